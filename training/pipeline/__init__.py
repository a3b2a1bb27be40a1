"""Model parallelism: the layers of one model on several devices, fed by micro-batches."""

from training.pipeline.run import Pipeline
from training.pipeline.targets import TargetBatches

__all__ = ["Pipeline", "TargetBatches"]
