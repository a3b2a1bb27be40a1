"""The form of a rule."""

from __future__ import annotations

import re
from collections.abc import Callable

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.lines import Line

Rule = tuple[re.Pattern[str], Callable[[Collector, Line, re.Match[str]], None]]
