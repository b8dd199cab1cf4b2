"""Plan the cover by k balls: k practical 1-clusters within one budget."""

import math
from dataclasses import dataclass, field, replace

from core.budget import Budget, Mechanism, calibrate, spend
from core.domain import Grid
from core.draws import Charged, Laplace, charged
from core.k_cover.cover import CountRows, Cover, CoverRound, Target
from core.k_cover.params import KCover
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.plan import (
    Draws,
    Setting,
    accuracy_of,
    promises_of,
    smallest_target,
)
from core.one_cluster.practical.rounds import FitRadius, GoodCenter, GoodRadius
from core.plan import Plan

_NOMINAL = 1000
"""Target for which noise is planned where the true one follows from a count: no round samples it."""

_RATIO = 1.02  # of neighboring candidate radii: the edge of a cover decides what is an outlier
_LARGER = 4  # samples are so many times as large then

_COUNT = 0.03  # part of epsilon that counts all records, where they are counted


@dataclass(frozen=True)
class _AnyTarget(Setting):
    """A setting whose noise is planned before its target is known.

    No sampling can be planned, so its amplification is not counted on, which larger samples make up for;
    and no floor, but the sample bounds the number of boxes.
    """

    def rate(self, sample: int) -> float:
        return super().rate(_LARGER * sample)

    def floor(self, sample: int) -> int:
        return 0


@dataclass(frozen=True)
class Step:
    """One round of the practical 1-cluster that looks for one ball.

    Args:
        setting: what the noise was planned for; its target may be another.
        draws: the noise, whatever the target.
        salt: 16 secret bytes that choose the samples.
        ball: number of the ball, from 0: the rounds of each sample by themselves.
        number: number of the round.
    """

    setting: Setting
    draws: Draws
    salt: bytes = field(repr=False)
    ball: int
    number: int

    def step(self, target: int) -> Charged:
        """Return the round: thresholds and sample for `target`, the noise as planned."""
        setting = replace(self.setting, params=replace(self.setting.params, target=target))
        step = setting.rounds(self.draws, self.salt)[self.number]
        if isinstance(step, FitRadius):
            # A cover wants the target's records rather than a small radius. The 1-cluster aims lower by four
            # noise scales or more, which its promise keeps: more than the further candidates cost here.
            return replace(step, target=target, ratio=_RATIO)
        if isinstance(step, GoodRadius | GoodCenter):
            thinning = replace(step.thinning, tweak=step.thinning.tweak + 2 * self.ball)
            return replace(step, thinning=thinning)
        return step


@dataclass(frozen=True)
class _Planned:
    """Everything a plan is made from."""

    grid: Grid
    params: KCover
    budget: Budget
    neighbors: Neighbors

    @property
    def counts(self) -> bool:
        return self.params.coverage is not None

    @property
    def failure(self) -> float:
        """What each ball, and the count, may fail with (union bound)."""
        return self.params.failure / (self.params.k + self.counts)

    def setting(self, multiplier: float, target: int | None = None) -> Setting:
        """Return the setting of one ball: at multiplier 1 about the epsilon of a k-fold composition.

        epsilon / sqrt(k): Nissim, Stemmer and Vadhan 2016, Observation 3.5.
        """
        budget = Budget(
            multiplier * self.budget.epsilon / math.sqrt(self.params.k), self.budget.delta / self.params.k
        )
        one = OneCluster(
            target or self.params.target or _NOMINAL, self.failure, "practical", self.params.shares
        )
        kind = _AnyTarget if self.counts else Setting
        return kind(self.grid, one, budget, self.neighbors)

    def counting(self, multiplier: float) -> Laplace:
        """The draw that counts all records; it adds nothing where their number is public."""
        if self.neighbors.name == "replace_one":
            return Laplace(what="count", scale=0.0, sensitivity=0.0)
        return Laplace.of("count", multiplier * _COUNT * self.budget.epsilon, self.neighbors.count())

    def mechanisms(self, multiplier: float) -> tuple[Mechanism, ...]:
        """Return what a run at this multiplier is charged for."""
        return charged(self.rounds(multiplier, bytes(16)))

    def rounds(self, multiplier: float, salt: bytes) -> tuple[CoverRound | CountRows, ...]:
        """Return the rounds: the count, then the same ones for each ball."""
        setting, k = self.setting(multiplier), self.params.k
        # The shares stay those of the planned target.
        setting = replace(setting, params=replace(setting.params, shares=setting.shares()))
        draws, target = setting.draws(1.0), Target(k, self.params.target, self.params.coverage)
        steps = setting.rounds(draws, salt)
        balls = tuple(
            CoverRound(
                Step(setting, draws, salt, ball, number),
                target,
                last=number == len(steps) - 1,
                name=f"{step.name}_{ball + 1}",
                floor=step.floor,
                drawn=step.draws(),
            )
            for ball in range(k)
            for number, step in enumerate(steps)
        )
        return (CountRows(self.counting(multiplier)), *balls) if self.counts else balls

    def promises(self, multiplier: float) -> dict[str, float | None]:
        setting = self.setting(multiplier)
        promised = promises_of(setting, accuracy_of(setting, setting.draws(1.0)))
        if not self.counts:
            return promised
        error = math.ceil(self.counting(multiplier).scale * math.log(1 / self.failure))
        return {"count_error": promised["count_error"], "rows_error": error}

    def serves(self, multiplier: float, target: int) -> bool:
        """Whether a target of the first ball is promised, with at least half of it in the ball."""
        setting = self.setting(multiplier, target)
        draws = (self.setting(multiplier) if self.counts else setting).draws(1.0)
        accuracy = accuracy_of(setting, draws)
        return accuracy.found and accuracy.missing <= target / 2


def _notes(planned: _Planned, promises: dict[str, float | None], smallest: int | None) -> tuple[str, ...]:
    notes = [
        f"Up to {planned.params.k} balls are looked for one after the other, and the first search that finds "
        "nothing ends it. The budget is that of all of them, whether or not they are found.",
        "Each ball's count leaves out the rows that earlier balls hold.",
    ]
    if planned.counts and smallest is not None:
        needed = math.ceil(smallest * planned.params.k / (planned.params.coverage or 1))
        notes.append(
            f"A full promise needs about {smallest:,} rows a ball, so {needed:,} rows in all; with fewer "
            "the run may find fewer balls."
        )
    if not planned.counts and promises["missing"] is None:
        notes.append(
            f"The target {planned.params.target} is too small for a promise at this budget: the run may "
            "find fewer balls, or wider ones. What is released is as private as ever."
        )
    return tuple(notes)


def plan_k_cover(grid: Grid, params: KCover, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan k practical 1-clusters, each of the records that no earlier ball holds.

    The noise of all is composed as a whole and calibrated to spend the budget. With `coverage` the first
    round counts the records (where one is replaced, their number is public and released as it is). The noise
    of the others is planned before that and doesn't depend on it; their thresholds and samples do.

    Args:
        grid: the universe.
        params: how many balls, and how much they should hold.
        budget: what the run may spend.
        neighbors: the relation.
        salt: 16 secret bytes that choose the samples.

    Returns:
        Rounds and promises, which hold for all balls together. For a `target`: `missing` (every ball holds
        at least target - missing records of those left before it, where so many lay close together),
        `radius_factor` and `resolution` (as for one_cluster, of what was left), `count_error`. For a
        `coverage`: `count_error` and `rows_error`.

    Raises:
        ValueError: delta is 0, or a share has an unknown name.
    """
    grid.check_distances()
    if budget.delta <= 0:
        raise ValueError("privacy.delta is 0: k_cover chooses among boxes, which needs a delta above 0.")
    planned = _Planned(grid, params, budget, neighbors)
    multiplier = calibrate(budget, planned.mechanisms)
    mechanisms, promises = planned.mechanisms(multiplier), planned.promises(multiplier)
    smallest = smallest_target(lambda target: planned.serves(multiplier, target))
    return Plan(
        method="practical",
        rounds=planned.rounds(multiplier, salt),
        start=Cover(),
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises=promises,
        failure=params.failure,
        smallest_target=smallest,
        notes=_notes(planned, promises, smallest),
    )
