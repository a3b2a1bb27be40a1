"""Whether runs hold the devices: beside them nothing is a fair measurement.

Who waits in the queue is beside nobody. On GPUs a start beside others has to be asked for.
"""

from __future__ import annotations

import platform

from ringside.errors import LaunchError
from ringside.launch.queue import holders, refuse_held
from ringside.launch.queue_order import read_order
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.run import running_beside

CODE, ORDER = "beside", 65


def check(case: Case) -> Remark | None:
    spec = case.spec
    if spec is None:
        return None
    try:
        refuse_held(case.root, spec)
    except LaunchError as error:
        return Remark("error", str(error))
    if spec.queue:
        return _waiting(case)
    names = running_beside(case.root, spec, case.hardware.num_cores)
    if names:
        return remark("warning", "beside_runs", names=", ".join(names))
    return remark("fine", "beside_fine")


def _waiting(case: Case) -> Remark:
    assert case.spec is not None
    if read_order(case.root, platform.node()).is_paused:
        return remark("warning", "beside_paused")
    names = ", ".join(holder.name for holder in holders(case.root, case.spec))
    return remark("fine", "beside_waits", names=names) if names else remark("fine", "beside_fine")
