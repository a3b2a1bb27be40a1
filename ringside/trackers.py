"""The trackers that Accelerate knows, and whether their packages are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from ringside.errors import SpecError
from ringside.words import say

PACKAGES: dict[str, tuple[str, ...]] = {
    "aim": ("aim",),
    "clearml": ("clearml",),
    "comet_ml": ("comet_ml",),
    "dvclive": ("dvclive",),
    "mlflow": ("mlflow",),
    "swanlab": ("swanlab",),
    "tensorboard": ("tensorboard", "tensorboardX"),
    "trackio": ("trackio",),
    "wandb": ("wandb",),
}
"""Any one of its packages is enough for a tracker."""


def check_trackers(names: Iterable[str]) -> None:
    """SpecError for the first name that Accelerate does not know or that is not installed."""
    for name in names:
        if name not in PACKAGES:
            raise SpecError(say("request.no_tracker", name=name, known=", ".join(PACKAGES)))
        if not _is_installed(name):
            installed = ", ".join(filter(_is_installed, PACKAGES)) or say("request.no_packages")
            raise SpecError(
                say(
                    "request.tracker_missing",
                    name=name,
                    package=PACKAGES[name][0],
                    known=", ".join(PACKAGES),
                    installed=installed,
                )
            )


def _is_installed(name: str) -> bool:
    return any(importlib.util.find_spec(package) is not None for package in PACKAGES[name])
