"""What a run comes to in numbers, distributions and series, from its tables."""

from epicast.pipeline.metrics.measures import Measures
from epicast.pipeline.metrics.of_run import HISTOGRAMS, METRICS, SERIES, measure

__all__ = ["HISTOGRAMS", "METRICS", "SERIES", "Measures", "measure"]
