"""Learn a threshold from labeled examples: the exponential mechanism on the number of errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from core.aggregate import Counts
from core.budget import Budget, Mechanism, calibrate, spend
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.ordered.gaps import Order, Runs
from core.plan import Plan
from core.rounds import Block

Method = Literal["auto", "exponential"]


@dataclass(frozen=True)
class Threshold:
    """How well to learn.

    Args:
        alpha: part of the examples by which the released threshold may err more than the best one.
        method: `exponential`, or `auto`, which takes it.
        failure: probability with which a promise may fail.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    alpha: float = 0.01
    method: Method = "auto"
    failure: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"params.alpha is {self.alpha}: it must be above 0 and below 1.")
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto or exponential.")
        if not 0 < self.failure < 1:
            raise ValueError(f"params.failure is {self.failure}: it must be above 0 and below 1.")


@dataclass(frozen=True)
class FoundThreshold:
    """The released threshold: whatever is at or above it is labeled 1.

    Args:
        step: grid point; `size` where nothing is labeled 1.
    """

    step: int

    def result(self, grid: Grid) -> Mapping[str, Any] | None:
        """Return the threshold in data units; above the upper bound, nothing is labeled 1."""
        return {"threshold": grid.lower[0] + self.step * grid.step}


@dataclass(frozen=True)
class LearnThreshold:
    """Choose among all thresholds by the number of examples that they label wrongly.

    Adding an example adds 0 or 1 to every threshold's errors: their change has range 1, and twice that
    for a replacement (scale = moves / epsilon). With probability 1 - failure the released threshold
    makes at most scale ln((size + 1) / failure) errors more than the best one, whatever the labels.

    Args:
        size: number of grid points of the value's axis; thresholds are 0, ..., size.
        label: grid coordinate from which a label counts as 1.
        scale: Gumbel scale.
    """

    size: int
    label: int
    scale: float
    name: str = "threshold"
    floor: int = 0

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the examples of each value and label; the key is twice the value plus the label."""
        return Counts.of(2 * block.points[:, 0] + (block.points[:, 1] >= self.label))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundThreshold:
        """Release a threshold."""
        ones = aggregate.keys % 2 == 1
        positive = Order.of_counts(Counts(aggregate.keys[ones] // 2, aggregate.counts[ones]))
        negative = Order.of_counts(Counts(aggregate.keys[~ones] // 2, aggregate.counts[~ones]))
        both = Order.of_counts(Counts(aggregate.keys // 2, aggregate.counts))
        distinct = np.flatnonzero(np.append(True, both.values[1:] != both.values[:-1])[: len(both.values)])
        values = both.values[distinct]
        runs = Runs.between(Order(values, np.append(both.ranks[distinct], both.total)), 0, self.size + 1)
        wrong_ones = positive.ranks[np.searchsorted(positive.values, runs.starts, side="left")]
        wrong_zeros = (
            negative.total - negative.ranks[np.searchsorted(negative.values, runs.starts, side="left")]
        )
        return FoundThreshold(runs.choose(-(wrong_ones + wrong_zeros), self.scale, noise))

    def records_needed(self, alpha: float, failure: float) -> int:
        """Smallest n from which the additional errors are at most alpha n, but for probability `failure`."""
        return math.ceil(self.scale * (math.log(self.size + 1) - math.log(failure)) / alpha)


def plan_threshold(grid: Grid, params: Threshold, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the threshold.

    Args:
        grid: the universe: axis 0 is the value, axis 1 the label, 0 or 1.
        params: accuracy, method and failure.
        budget: what the run may spend; delta may be 0.
        neighbors: the relation; the number of records is never used.
        salt: unused: nothing is sampled.

    Returns:
        One round; promises `alpha` (additional errors, as a part of n) from `records_needed` records on, and
        `errors`, the same as a number.

    Raises:
        ValueError: there are not two columns, of which the second is 0 or 1.
    """
    if grid.dimension != 2:
        raise ValueError(
            f"domain.lower has {grid.dimension} values: threshold takes two columns, the value and the label."
        )
    if (grid.lower[1], grid.upper[1]) != (0, 1):
        raise ValueError(
            f"domain.lower {grid.lower[1]} and domain.upper {grid.upper[1]} of the label must be 0 and 1."
        )

    def build(factor: float) -> list[Mechanism]:
        epsilon = factor * budget.epsilon
        return [
            Mechanism("threshold", "exponential mechanism", neighbors.moves / epsilon, 1, epsilon=epsilon)
        ]

    mechanisms = tuple(build(calibrate(budget, build)))
    label = -(-grid.extents[1] // 2)
    step = LearnThreshold(grid.extents[0] + 1, max(1, label), mechanisms[0].scale)
    return Plan(
        method="exponential",
        rounds=(step,),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={
            "alpha": params.alpha,
            "records_needed": step.records_needed(params.alpha, params.failure),
            "errors": step.records_needed(1.0, params.failure),
        },
        failure=params.failure,
        notes=(
            "The threshold labels 1 what is at or above it.",
            "The counts of the distinct values and labels are merged and sorted on one machine.",
        ),
    )
