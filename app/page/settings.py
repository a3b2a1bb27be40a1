"""What one server of the page knows: where runs are, the machine, and its action token."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from app.guard import new_token
from app.login import Login
from app.views.checks import Checks
from app.views.comparisons import Comparisons
from app.views.consultations import Consultations
from app.views.desk import Desk
from app.views.gpus import GpuWatch
from app.views.leftovers import LeftoverWatch
from app.views.library_making import Making
from app.views.measuring import Measuring
from app.views.memory import Memory
from app.views.samples import SampleShelf
from app.views.trials import Trials
from ringside.hardware import Hardware, read_hardware


@dataclass(frozen=True)
class PageSettings:
    """Made once for a server, and handed to every page."""

    runs_root: Path
    hardware: Hardware = field(default_factory=read_hardware)
    token: str = field(default_factory=new_token)
    login: Login = field(default_factory=Login)
    checks: Checks = field(default_factory=Checks)
    trials: Trials = field(default_factory=Trials)
    samples: SampleShelf = field(default_factory=SampleShelf)
    memory: Memory = field(default_factory=Memory)
    gpus: GpuWatch = field(init=False)
    desk: Desk = field(init=False)
    comparisons: Comparisons = field(init=False)
    consultations: Consultations = field(init=False)
    measuring: Measuring = field(init=False)
    leftovers: LeftoverWatch = field(init=False)
    making: Making = field(init=False)

    def __post_init__(self) -> None:
        kinds = {
            "desk": Desk, "consultations": Consultations, "measuring": Measuring,
            "leftovers": LeftoverWatch, "making": Making,
        }  # fmt: skip
        for name, kind in kinds.items():
            object.__setattr__(self, name, kind(self.runs_root))
        object.__setattr__(self, "comparisons", Comparisons(self.desk))
        object.__setattr__(self, "gpus", GpuWatch(self.hardware))
