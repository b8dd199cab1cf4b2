"""Sample and aggregate: its aggregators, and what none of them serves."""

from core.sample_and_aggregate.average import AverageOfAnswers
from core.sample_and_aggregate.center_of_attention import CenterOfAnswers
from core.sample_and_aggregate.median import MedianOfAnswers
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.smooth_median import SmoothMedianOfAnswers
from core.sample_and_aggregate.stable_point import ClusterOfAnswers
from core.task import Setting, Task


def check(setting: Setting[SampleAndAggregate]) -> None:
    """Check that squared distances between answers fit into integers.

    Raises:
        InvalidValue: they don't.
    """
    setting.grid.check_distances()


SAMPLE_AND_AGGREGATE = Task(
    SampleAndAggregate,
    (MedianOfAnswers, SmoothMedianOfAnswers, CenterOfAnswers, ClusterOfAnswers, AverageOfAnswers),
    "the error expected, in widths of the axis on which it is largest (the geometric mean of three errors: "
    "where the fraction stable_fraction of the blocks agrees, where their answers lie evenly over the axis, "
    "and where they fall into two groups); methods that promise an error within a quarter of each axis come "
    "first; one_cluster is preferred where only a minority agrees",
    check,
    choice="aggregator",
)
