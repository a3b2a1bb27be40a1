"""One request for each of several presets."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.presets import Library
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec


def resolve_all(
    request: RunRequest, presets: Iterable[str], hardware: Hardware, library: Library
) -> tuple[list[RunSpec], dict[str, str]]:
    """The requests, and a sentence for each of several presets that cannot run here.

    RingsideError where it is the only one.
    """
    names = list(dict.fromkeys(presets))
    specs, refused = [], {}
    for name in names:
        try:
            specs.append(resolve(msgspec.structs.replace(request, preset=name), hardware, library))
        except RingsideError as error:
            if len(names) == 1:
                raise
            refused[name] = str(error)
    return specs, refused
