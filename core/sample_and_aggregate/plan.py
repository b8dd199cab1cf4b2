"""Plan sample and aggregate: pick the aggregator, and say what it promises."""

import math
from dataclasses import dataclass, field, replace

from core.budget import Budget, calibrate, spend
from core.domain import Grid
from core.draws import Charged, Laplace, charged
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import calibrate_noise
from core.mechanisms.exponential import Exponential
from core.mechanisms.smooth_noise import per_move
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.plan import plan_practical
from core.plan import Plan
from core.sample_and_aggregate.average import Average
from core.sample_and_aggregate.center_of_attention import CenterOfAttention, majority
from core.sample_and_aggregate.outputs import StableRadius
from core.sample_and_aggregate.params import Aggregator, SampleAndAggregate
from core.sample_and_aggregate.smooth_median import SmoothMedian
from core.sample_and_aggregate.stable_point import StablePoint

_RADIUS_SHARE = 0.2
# Few answers: what finds the cluster needs nearly all of epsilon, what refines it next to nothing.
_CLUSTER_SHARES = {
    "good_radius": 0.4,
    "good_center": 0.3,
    "average_1": 0.05,
    "average_2": 0.05,
    "fit_radius": 0.19,
    "count": 0.01,
}
_VANISHED = 12.0  # e^-12 of the domain is as good as none, see _attention
_PREFERRED: tuple[Aggregator, ...] = ("smooth_median", "center_of_attention", "one_cluster", "average")


def plan_sample_and_aggregate(
    grid: Grid, params: SampleAndAggregate, budget: Budget, neighbors: Neighbors, salt: bytes
) -> Plan:
    """Plan the release of what most blocks answer, from the answers of all blocks as records.

    A block's answer is one record, with the number of the block as identity. Each unit is in one block, by
    its identity, so one more or less changes one answer; a replaced one may fall into another block and
    change two (`core.mechanisms.smooth_noise.per_move`).

    The promise of an aggregator, `leftover`: if the `stable_fraction` of the blocks answer within some
    distance of a point, the release is within a small multiple of that distance plus `leftover` of it, in
    data units per axis, whatever the other blocks answer. The released radius, to 10%, is no
    wider than what holds the `stable_fraction` of the answers, and holds all of these but `radius_blocks`.

    `auto` is one_cluster for a stable fraction of at most 1/2, which no other serves; else the first of
    smooth_median, center_of_attention, one_cluster, average whose leftover is at most a step, or the one
    with the least.

    Args:
        grid: the universe of the answers.
        params: blocks, aggregator and stable fraction.
        budget: what the run may spend.
        neighbors: the relation between databases of records.
        salt: 16 secret bytes that choose samples of answers.

    Raises:
        ValueError: the aggregator does not fit the budget.
    """
    grid.check_distances()
    setting = _Setting(grid, params, budget, neighbors.moves, salt)
    if params.aggregator != "auto":
        return setting.plan(params.aggregator)
    names = [name for name in _PREFERRED if name != "one_cluster" or budget.delta > 0]
    plans = {name: setting.plan(name) for name in names}
    if params.stable_fraction <= 0.5 and "one_cluster" in plans:
        best: Aggregator = "one_cluster"
    else:
        best = min(plans, key=lambda name: max(grid.step, plans[name].promises["leftover"]))
    others: dict[str, dict[str, object]] = {
        name: dict(plan.promises) for name, plan in plans.items() if name != best
    }
    return replace(plans[best], alternatives=others)


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    grid: Grid
    params: SampleAndAggregate
    budget: Budget
    moves: int
    salt: bytes = field(repr=False)

    @property
    def stable(self) -> int:
        """Blocks expected to agree."""
        return max(1, math.floor(self.params.stable_fraction * self.params.blocks))

    def plan(self, name: Aggregator) -> Plan:
        """Plan one aggregator."""
        if name == "one_cluster":
            return self._cluster()
        make = {
            "average": self._average,
            "smooth_median": self._median,
            "center_of_attention": self._attention,
        }[name]
        multiplier = calibrate(self.budget, lambda m: charged((make(m * self.budget.epsilon).round,)))
        draft = make(multiplier * self.budget.epsilon)
        error = 2 * draft.radius.rank_error(self.params.failure / 2)
        return self._as_plan(name, draft.round, draft.leftover, error, ())

    def _as_plan(
        self,
        name: str,
        round_: Charged,
        leftover: float,
        radius_blocks: int,
        notes: tuple[str, ...],
    ) -> Plan:
        mechanisms = charged((round_,))
        return Plan(
            method=name,
            rounds=(round_,),
            start=None,
            mechanisms=mechanisms,
            spend=spend(mechanisms, self.budget.delta),
            promises={"leftover": leftover, "radius_blocks": radius_blocks},
            failure=self.params.failure,
            notes=notes,
        )

    def _radius(self, epsilon: float) -> StableRadius:
        choice = Exponential.of("radius", _RADIUS_SHARE * epsilon, 2, changes=self.moves)
        aimed = StableRadius(self.grid, self.stable, choice)
        # No wider than what holds the stable answers: the rest may be anywhere.
        return replace(aimed, target=max(1, self.stable - aimed.rank_error(self.params.failure / 2)))

    def _average(self, total: float) -> "_Draft":
        epsilon, _ = per_move(total, self.budget.delta, self.moves)
        axes, p, radius = self.grid.dimension, self.params, self._radius(epsilon)
        each = (1 - _RADIUS_SHARE) * epsilon / axes
        loose = p.ranges == "loose"
        what, changes = "sum of an axis, per width of its range", self.moves
        sum_ = Laplace.of(what, each / (1 + loose), 1, times=axes, changes=changes)
        quartile = Exponential.of("quartile of an axis", each / 4, 2, times=2 * axes, changes=changes)
        round_ = Average(
            grid=self.grid,
            blocks=p.blocks,
            sum=sum_,
            quartile=quartile if loose else None,
            radius=radius,
        )
        noise = sum_.scale * math.log(2 * axes / p.failure) / p.blocks
        leftover = 1.0 if loose else min(1.0, 1 - self.stable / p.blocks + noise)
        return _Draft(round_, self._width(leftover), radius)

    def _median(self, total: float) -> "_Draft":
        epsilon, delta = per_move(total, self.budget.delta, self.moves)
        axes, p, radius = self.grid.dimension, self.params, self._radius(epsilon)
        each, failure = (1 - _RADIUS_SHARE) * epsilon / axes, p.failure / (2 * axes)
        noise = calibrate_noise(
            "median of an axis", "auto", each, delta / axes, failure, 1.0, changes=self.moves, times=axes
        )
        round_ = SmoothMedian(grid=self.grid, blocks=p.blocks, noise=noise, radius=radius)
        spare = self.stable - (p.blocks + 1) // 2 - 1
        leftover = self._vanishing(noise, spare, failure, 1.0)
        return _Draft(round_, self._width(leftover), radius)

    def _attention(self, total: float) -> "_Draft":
        epsilon, delta = per_move(total, self.budget.delta, self.moves)
        axes, p, radius = self.grid.dimension, self.params, self._radius(epsilon)
        spare = self.stable - majority(p.blocks)
        # As smooth as it takes for the domain to vanish within the spare changes, and hardly more:
        # the radius that holds a majority grows slowly.
        doubling, failure = max(1.0, spare / _VANISHED), p.failure / (2 * axes)
        share = (1 - _RADIUS_SHARE) * epsilon
        noise = calibrate_noise(
            "center of attention", "auto", share, delta, failure, doubling, axes=axes, changes=self.moves
        )
        round_ = CenterOfAttention(grid=self.grid, blocks=p.blocks, noise=noise, radius=radius)
        diameters = round_.diameter / max(self.grid.extents)
        leftover = self._vanishing(noise, spare, failure, diameters)
        return _Draft(round_, self._width(leftover), radius)

    def _cluster(self) -> Plan:
        """Plan the 1-cluster of the answers, `moves` of which differ between neighbors."""
        p, one_replaced = self.params, Neighbors("replace_one")
        target = OneCluster(self.stable, p.failure, "practical", _CLUSTER_SHARES)
        inner = plan_practical(self.grid, target, self.budget, one_replaced, self.salt, changes=self.moves)
        found = inner.promises["missing"] is not None
        missing = int(inner.promises["missing"]) if found else p.blocks
        rounds = inner.rounds
        round_ = StablePoint(grid=self.grid, blocks=p.blocks, rounds=rounds)
        leftover = 0.0 if found else self._width(1.0)
        return self._as_plan("one_cluster", round_, leftover, missing, inner.notes)

    def _width(self, part: float) -> float:
        """Return a part of the widest axis in data units."""
        return part * max(self.grid.extents) * self.grid.step

    @staticmethod
    def _vanishing(noise: Admissible, spare: int, failure: float, widths: float) -> float:
        """Noise, as a part of the width, that is left where `spare` changes stay in the stable answers."""
        if spare < 0:
            return 1.0
        return min(1.0, widths * noise.scale(math.exp(-noise.beta * spare)) * noise.tail(failure))


@dataclass(frozen=True)
class _Draft:
    """One aggregator at some epsilon."""

    round: Charged
    leftover: float
    radius: StableRadius
