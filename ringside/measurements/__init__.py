"""What probes measure, as plain structs: sweeps of collectives, timed steps, parts of a model.

    store = Store(measurements_root())
    series = store.sweep(hardware, num_ranks=2)

`training.probe` measures and writes; the doctor, the estimate and the page read. Nothing here
loads torch or numpy when it is imported.
"""

from ringside.measurements.description import Crowded, Description, Gradient, StepProfile
from ringside.measurements.experiment import Arm, ArmName, Experiment
from ringside.measurements.sweep import Point, Series, Sweep
from ringside.measurements.timing import StepTiming

__all__ = [
    "Arm", "ArmName", "Crowded", "Description", "Experiment", "Gradient", "Point", "Series",
    "StepProfile", "StepTiming", "Sweep",
]  # fmt: skip
