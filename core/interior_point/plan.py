"""Plan an interior point: the methods' promises side by side; from public parameters alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from core.budget import Budget, Mechanism, calibrate, spend
from core.domain import Grid
from core.draws import Charged, Draw, charged
from core.gaps import Order
from core.interior_point.finder import AmongPoints, Finder, FindInSample, FindInteriorPoint
from core.interior_point.heavy_paths import HeavyPaths, heavy_paths
from core.interior_point.one_cluster import int_point
from core.interior_point.tree_log import TreeLog, tree_log
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.noise import Noise
from core.plan import Plan, check_failure

Method = Literal["auto", "exponential", "tree_log", "heavy_paths", "one_cluster"]


@dataclass(frozen=True)
class InteriorPoint:
    """How to find a point between the smallest and the largest record.

    Args:
        method: `exponential`, `tree_log`, `heavy_paths`, `one_cluster`, or `auto`, which takes the one that
            needs the fewest records.
        failure: probability with which the promise may fail.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    method: Method = "auto"
    failure: float = 0.1

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            allowed = ", ".join(get_args(Method)[:-1])
            raise ValueError(
                f"params.method is {self.method!r}: it must be {allowed} or {get_args(Method)[-1]}."
            )
        check_failure(self.failure)


@dataclass(frozen=True)
class Candidate:
    """A method at its scales, and the number of records from which it is promised to succeed."""

    finder: Finder
    records_needed: int

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What a run is charged for."""
        return charged((FindInteriorPoint(self.finder),))


def candidate(
    method: str, size: int, failure: float, budget: Budget, neighbors: Neighbors, salt: bytes
) -> Candidate:
    """Calibrate one method on a universe of any size.

    Args:
        method: one of `InteriorPoint`, but `auto`.
        size: number of grid points, any Python integer.
        failure: of the promise.
        budget: what may be spent.
        neighbors: the relation.
        salt: 16 secret bytes, for `one_cluster`, which samples.

    Raises:
        ValueError: the method does not support the relation, the budget or the universe.
    """
    if method == "exponential":
        return _exponential(size, failure, budget, neighbors)
    if neighbors.moves == 1:
        raise ValueError(
            f"params.method is {method}: it works with the number of records, which is public under "
            "privacy.neighbors replace_one only; use exponential."
        )
    if budget.delta == 0:
        raise ValueError(
            f"privacy.delta is 0: params.method {method} needs a delta above 0; use exponential."
        )
    bits = max(1, (size - 1).bit_length())
    own = budget.delta / 2  # the other half is for composition

    def build(epsilon: float) -> TreeLog | HeavyPaths:
        make = tree_log if method == "tree_log" else heavy_paths
        return make(bits, epsilon, own, failure)

    if method == "one_cluster":
        reduction = int_point(size, budget.epsilon, budget.delta, failure, salt)
        return Candidate(Clamped(reduction, size - 1), reduction.records_needed(failure))
    share = calibrate(budget, lambda factor: Candidate(build(factor * budget.epsilon), 0).mechanisms)
    finder = build(share * budget.epsilon)
    needed = finder.path.records if isinstance(finder, TreeLog) else finder.records_needed(failure)
    return Candidate(Clamped(finder, size - 1), needed)


@dataclass(frozen=True)
class Clamped:
    """A method whose answers are kept inside the grid: that moves no interior point outside."""

    finder: Finder
    last: int

    def draws(self) -> tuple[Draw, ...]:
        """See `Finder`."""
        return self.finder.draws()

    def find(self, order: Order, noise: Noise) -> int | None:
        """See `Finder`."""
        found = self.finder.find(order, noise)
        return None if found is None else min(max(0, found), self.last)


def _exponential(size: int, failure: float, budget: Budget, neighbors: Neighbors) -> Candidate:
    def build(factor: float) -> AmongPoints:
        return AmongPoints(size, Exponential.of("point", factor * budget.epsilon, neighbors.moves))

    finder = build(calibrate(budget, lambda factor: Candidate(build(factor), 0).mechanisms))
    return Candidate(finder, finder.records_needed(failure))


def plan_interior_point(
    grid: Grid, params: InteriorPoint, budget: Budget, neighbors: Neighbors, salt: bytes
) -> Plan:
    """Plan an interior point.

    Args:
        grid: the universe; its first axis is used.
        params: method and failure.
        budget: what the run may spend; delta may be 0 for the exponential mechanism.
        neighbors: the relation.
        salt: 16 secret bytes that choose samples.

    Returns:
        One round; promise `records_needed`: with so many records the released point is one of the interior.

    Raises:
        ValueError: there is more than one column, or the method does not support the relation, the budget
            or the universe.
    """
    if grid.dimension != 1:
        raise ValueError(f"domain.lower has {grid.dimension} values: interior_point takes one column.")
    size = grid.extents[0] + 1

    def calibrated(method: str) -> Candidate:
        return candidate(method, size, params.failure, budget, neighbors, salt)

    first = "exponential" if params.method == "auto" else params.method
    candidates: dict[str, Candidate] = {first: calibrated(first)}
    if params.method == "auto":
        candidates.update(_others(calibrated))
    best = min(candidates, key=lambda name: candidates[name].records_needed)
    chosen = candidates[best]
    round_: Charged = FindInteriorPoint(chosen.finder)
    memory = "The counts of the distinct grid points are merged and sorted on one machine."
    if best != "exponential":
        round_ = FindInSample(chosen.finder, chosen.records_needed, salt)
        memory = f"It uses {chosen.records_needed:,} records, chosen at random: one machine holds no more."
    mechanisms = charged((round_,))
    others = {name: {"records_needed": c.records_needed} for name, c in candidates.items() if name != best}
    return Plan(
        method=best,
        rounds=(round_,),
        start=None,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={"records_needed": chosen.records_needed},
        failure=params.failure,
        alternatives=others,
        notes=(
            f"{best} needs {chosen.records_needed:,} records for an interior point.",
            memory,
        ),
    )


def _others(calibrated: Callable[[str], Candidate]) -> dict[str, Candidate]:
    """Calibrate every method but the exponential mechanism, which serves all."""
    candidates = {}
    for method in get_args(Method)[2:]:
        try:
            candidates[method] = calibrated(method)
        except ValueError:  # the method does not serve this relation or budget
            continue
    return candidates
