"""Predicts step time, memory and speed-up of a preset from measurements, before it runs.

    inputs = Inputs(description=store.description(spec), sweep=store.sweep(hardware, 2))
    found = estimate(spec, inputs)      # found.step_ms, found.missing
    calibrate(record, description, sweep)   # lets a finished run correct the replay

Nothing here measures. A figure is None where an input is missing, and a sentence says what to
measure.
"""

from ringside.estimate.calibration import Calibration, calibrate
from ringside.estimate.estimate import Estimate, Inputs, estimate
from ringside.estimate.keeping import Outcome, gpu_name, inputs_for, outcome_of, store_estimate

__all__ = [
    "Calibration",
    "Estimate",
    "Inputs",
    "Outcome",
    "calibrate",
    "estimate",
    "gpu_name",
    "inputs_for",
    "outcome_of",
    "store_estimate",
]
