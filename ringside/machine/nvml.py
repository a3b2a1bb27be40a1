"""NVML, opened once and asked with care: a driver, a card or a container may refuse anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ringside.hardware import Hardware
from ringside.words import say


@contextmanager
def open_nvml(hardware: Hardware, problems: list[str]) -> Iterator[dict[int, Any]]:
    """A handle for each visible GPU by its index; none, and a sentence, where NVML fails."""
    if not hardware.gpus:
        yield {}
        return
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        problems.append(say("machine.nvml", why=str(error).rstrip(".")))
        yield {}
        return
    try:
        yield _handles(hardware, problems)
    finally:
        ask(pynvml.nvmlShutdown)


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of an NVML function, None where the driver has none."""
    import pynvml

    # Where nvidia-ml-py and the driver are years apart, a structure may not fit its call.
    with suppress(pynvml.NVMLError, AttributeError, ValueError, TypeError):
        return function(*arguments)
    return None


def _handles(hardware: Hardware, problems: list[str]) -> dict[int, Any]:
    import pynvml

    handles = {}
    for gpu in hardware.gpus:
        try:
            handles[gpu.index] = pynvml.nvmlDeviceGetHandleByIndex(gpu.index)
        except pynvml.NVMLError as error:
            problems.append(say("machine.gpu", index=gpu.index, why=str(error).rstrip(".")))
    return handles
