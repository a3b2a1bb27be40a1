"""Scores of a classifier: AUC, F1, average precision, counts, and the interval of a difference.

Training and comparison use these same functions. Importing this package loads neither numpy nor
scikit-learn.
"""

from ringside.scores.bootstrap import Interval, Metric, Resampling, paired_bootstrap
from ringside.scores.by_class import MIN_COUNT, ClassMetric, Differences, paired_differences
from ringside.scores.predictions import Task
from ringside.scores.score import ClassScores, Scores, score

__all__ = [
    "MIN_COUNT",
    "ClassMetric",
    "ClassScores",
    "Differences",
    "Interval",
    "Metric",
    "Resampling",
    "Scores",
    "Task",
    "paired_bootstrap",
    "paired_differences",
    "score",
]
