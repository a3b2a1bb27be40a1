"""Runs side by side: speed, scores and their differences, where those are allowed.

comparison     the columns, and who is compared with whom
gate           faster, but as good? With the tolerance and the noise
quality        did the scores fall? Over several seeds: sides, noise, multiple, power, answer
by_class       every class: scores, counts, differences with their intervals
cost           how long devices were held
configuration  in what requests, set-ups and machines differ
prediction     what was predicted before the run, beside what came of it
scaling        speed-up over the number of devices
curves         losses and scores by step, epoch, time and images
"""

from ringside.compare.by_class import ComparedClass
from ringside.compare.comparison import ComparedRun, Comparison, compare, kept_differences
from ringside.compare.configuration import Difference, configuration
from ringside.compare.curves import CURVES, Curve, CurveMetric, CurvePoint, curve, smoothed
from ringside.compare.gate import TOLERANCE, Gate
from ringside.compare.scaling import ScalingRun, ScalingSeries

__all__ = [
    "CURVES",
    "TOLERANCE",
    "ComparedClass",
    "ComparedRun",
    "Comparison",
    "Curve",
    "CurveMetric",
    "CurvePoint",
    "Difference",
    "Gate",
    "ScalingRun",
    "ScalingSeries",
    "compare",
    "configuration",
    "curve",
    "kept_differences",
    "smoothed",
]
