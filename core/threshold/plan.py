"""Plan a threshold learned from labeled examples, and the round that counts them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from core.aggregate import Counts
from core.budget import Budget, calibrate, spend
from core.domain import Grid
from core.draws import Draw, charged
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.plan import Plan, check_failure
from core.rounds import Block
from core.threshold.learners import LEAST_ALPHA, AmongAll, AmongRanks, Examples, Learner

Method = Literal["auto", "exponential", "interior_point"]


@dataclass(frozen=True)
class Threshold:
    """How well to learn.

    Args:
        alpha: part of the examples by which the released threshold may err more than the best one.
        method: `exponential` (choose among all thresholds), `interior_point` (an interior point of the
            examples around a chosen rank), or `auto`, which takes the one that needs fewer examples.
        failure: probability with which a promise may fail.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    alpha: float = 0.01
    method: Method = "auto"
    failure: float = 0.05

    def __post_init__(self) -> None:
        if not LEAST_ALPHA <= self.alpha < 1:
            raise ValueError(f"params.alpha is {self.alpha}: it must be at least {LEAST_ALPHA} and below 1.")
        if self.method not in get_args(Method):
            raise ValueError(
                f"params.method is {self.method!r}: it must be auto, exponential or interior_point."
            )
        check_failure(self.failure)


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
    """The only round: count the examples of each value and label, then let the learner find a threshold.

    Args:
        label: grid coordinate from which a label counts as 1.
        learner: the method.
    """

    label: int
    learner: Learner
    name: str = "threshold"
    floor: int = 0

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.learner.draws()

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the examples of each value and label; the key is twice the value plus the label."""
        return Counts.of(2 * block.points[:, 0] + (block.points[:, 1] >= self.label))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> FoundThreshold:
        """Release a threshold."""
        return FoundThreshold(self.learner.learn(Examples.of_counts(aggregate), noise))


def plan_threshold(grid: Grid, params: Threshold, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the threshold.

    Args:
        grid: the universe: axis 0 is the value, axis 1 the label, 0 or 1.
        params: accuracy, method and failure.
        budget: what the run may spend; delta may be 0.
        neighbors: the relation; the number of records is used under `replace_one` only.
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

    plans = {name: _plan(name, grid, params, budget, neighbors) for name in ("exponential", "interior_point")}
    best = min(plans, key=lambda name: plans[name].promises["records_needed"])
    chosen = best if params.method == "auto" else params.method
    return replace(
        plans[chosen],
        alternatives={name: plan.promises for name, plan in plans.items() if name != chosen},
    )


def _plan(method: str, grid: Grid, params: Threshold, budget: Budget, neighbors: Neighbors) -> Plan:
    size, failure = grid.extents[0] + 1, params.failure

    def build(factor: float) -> tuple[LearnThreshold, AmongAll | AmongRanks]:
        epsilon = factor * budget.epsilon
        learner: AmongAll | AmongRanks
        if method == "interior_point":
            learner = AmongRanks.of(size, epsilon, neighbors, failure)
        else:
            learner = AmongAll(size, Exponential.of("threshold", epsilon, neighbors.moves))
        return LearnThreshold(max(1, -(-grid.extents[1] // 2)), learner), learner

    round_, learner = build(calibrate(budget, lambda factor: charged((build(factor)[0],))))
    mechanisms = charged((round_,))
    notes = [
        "The threshold labels 1 what is at or above it.",
        "The counts of the distinct values and labels are merged and sorted on one machine.",
    ]
    if isinstance(learner, AmongRanks):
        failure /= 2  # the other half is for the number of examples and the finder
        notes.append(f"The promised number of errors is for at most {learner.examples_covered:,} examples.")
    return Plan(
        method=method,
        rounds=(round_,),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={
            "alpha": params.alpha,
            "records_needed": learner.examples_needed(params.alpha, failure),
            "errors": learner.errors(failure),
        },
        failure=params.failure,
        notes=tuple(notes),
    )
