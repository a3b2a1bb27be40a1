"""Whether a compiler is here for what torch.compile generates: C for Triton, C++ on a CPU."""

from __future__ import annotations

import os
import shutil

from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark

CODE, ORDER = "compiler", 25

C, CPP = ("cc", "gcc", "clang"), ("c++", "g++", "clang++")


def check(case: Case) -> Remark | None:
    if case.spec is None or not case.spec.training.compile:
        return None
    variable, names = ("CXX", CPP) if case.spec.device == "cpu" else ("CC", C)
    asked = os.environ.get(variable)
    if any(map(shutil.which, (asked,) if asked else names)):
        return remark("fine", "compiler_fine")
    return remark("warning", "compiler_absent", names=", ".join(names), variable=variable)
