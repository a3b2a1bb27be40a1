"""What Gradio may learn from the environment: nothing. Imported before Gradio is.

Its variables (GRADIO_SHARE, GRADIO_ALLOWED_PATHS, GRADIO_VIBE_MODE, …) open the page to others, and
some are read when Gradio is imported, or overrule what it is told. What it copies lies in a folder
of this user: its own, below /tmp, belongs to whoever on the machine came first.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

PREFIX = "GRADIO_"
FOLDER = "GRADIO_TEMP_DIR"


def close_environment() -> None:
    """Take Gradio's variables out of the environment, of the children too."""
    for name in [name for name in os.environ if name.startswith(PREFIX) and name != FOLDER]:
        del os.environ[name]
    os.environ.setdefault(FOLDER, str(Path(platformdirs.user_cache_dir("ringside")) / "page"))


close_environment()
