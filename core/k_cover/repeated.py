"""The practical 1-cluster k times, within one budget."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from core.budget import Budget
from core.draws import Laplace
from core.errors import InvalidValue
from core.k_cover.found import Cover, Promises
from core.k_cover.params import KCover
from core.k_cover.rounds import CountRows, CoverRound, Target
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.budget_split import BudgetSplit, Draws
from core.one_cluster.practical.guarantee import guarantee, serves, smallest_target
from core.one_cluster.practical.locate import FindRadiusAndRegion, PoissonSample
from core.one_cluster.practical.method import PracticalRound, rounds_of, tightness
from core.one_cluster.practical.refine import FitRadius
from core.rounds import sections_of
from core.task import Accuracy, Method, Setting
from core.tightness import Tightness

_NOMINAL = 1000
"""Target for which noise is planned where the true target is computed from a count.

It is so small that the plan samples no round: every rate is 1.
"""

_RATIO = 1.02  # of neighboring candidate radii: fine, because records outside of the cover are outliers
_LARGER = 2  # factor by which samples are larger where the target is computed from a count

_ROWS = Tightness(
    "The error of the number of all rows gets an equal part of the failure probability as each ball does. "
    "So it is within the promised error more often than promised.",
    reached=False,
)

_COUNT = 0.03  # part of epsilon that is spent on counting all records, where they are counted


@dataclass(frozen=True)
class AnyTarget(BudgetSplit):
    """A split whose noise is planned before its target is known.

    The sampling rates are unknown then, so the noise is planned without amplification by sampling. Larger
    samples make up for the larger noise. Counts have no floor. A region is chosen tile by tile, so the counts
    of all regions are never held.
    """

    def rate(self, sample: int) -> float:
        """See `BudgetSplit.rate`."""
        return super().rate(_LARGER * sample)

    def floor(self, sample: int) -> int:
        """See `BudgetSplit.floor`."""
        return 0

    @property
    def clips(self) -> bool:
        """See `BudgetSplit.clips`: the floor of a round is planned, so it cannot depend on the target."""
        return False

    @property
    def lattice(self) -> bool:
        """See `BudgetSplit.lattice`: a lattice is too coarse for large targets."""
        return False


@dataclass(frozen=True)
class BallSearch:
    """One round of the practical 1-cluster that looks for one ball.

    Args:
        split: the split for which the noise was planned. The target of the round may be another.
        draws: the noise, which is the same for every target.
        ball: number of the ball, from 0. The rounds of each ball see samples of their own.
        number: number of the round.
    """

    split: BudgetSplit
    draws: Draws
    ball: int
    number: int

    def step(self, target: int) -> PracticalRound:
        """Return the round: thresholds and sample for `target`, the noise as planned."""
        split = self.split.for_target(target)
        step = rounds_of(split, self.draws, guarantee(split, self.draws))[self.number]
        if isinstance(step, FitRadius):
            # A cover should hold the full target, even at a larger radius. So the fit aims at the target
            # itself, where the 1-cluster aims at least three noise scales lower. Aiming higher gains more
            # records than the larger number of candidate radii loses, so `missing` still holds.
            return replace(step, target=target, ratio=_RATIO)
        if isinstance(step, FindRadiusAndRegion):
            radius = replace(step.radius, sample=self._own(step.radius.sample))
            return replace(
                step, radius=radius, region=replace(step.region, sample=self._own(step.region.sample))
            )
        return step

    def _own(self, sample: PoissonSample) -> PoissonSample:
        """Return the sample that the ball has in place of another."""
        return replace(sample, tweak=sample.tweak + 2 * self.ball)


class Repeated(Method[KCover]):
    """The practical 1-cluster k times, each time on the records that no earlier ball holds.

    The budget is calibrated for the composition of all draws of all balls. With `coverage` the first round
    counts the records; under `replace_one` their number is public and released exactly. The noise of the
    other rounds is planned beforehand and doesn't depend on this count. Their thresholds and samples do.
    """

    name: ClassVar[str] = "practical"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.budget.delta > 0:
            return None
        return InvalidValue("delta", 0, "k_cover chooses among boxes, which needs a delta above 0")

    def start(self) -> Cover:
        """See `Method.start`."""
        return Cover()

    def rounds(self, share: float) -> tuple[CoverRound | CountRows, ...]:
        """See `Method.rounds`: the count, then the same rounds for each ball."""
        params, planned = self.setting.params, self._split(share)
        # The shares stay those of the planned target.
        one = replace(planned.setting.params, shares=planned.shares())
        split = replace(planned, setting=replace(planned.setting, params=one))
        draws, target = split.draws(1.0), Target(params.k, params.target, params.coverage)
        steps = rounds_of(split, draws, guarantee(split, draws))
        balls = tuple(
            CoverRound(
                BallSearch(split, draws, ball, number),
                target,
                last=number == len(steps) - 1,
                name=f"{step.name}_{ball + 1}",
                purpose=f"ball {ball + 1}: {step.purpose}",
                sections=sections_of(step),
                drawn=step.draws(),
            )
            for ball in range(params.k)
            for number, step in enumerate(steps)
        )
        return (CountRows(self._count(share)), *balls) if self._counts else balls

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        smallest = smallest_target(lambda target: self._serves(share, target))
        promises = self._promises(share)
        error = math.inf if smallest is None else float(smallest)
        found = tightness(promises, self.setting.params.k + self._counts)
        if promises.rows_error is not None:
            found["rows_error"] = _ROWS
        return Accuracy(promises, error, self._notes(promises, smallest), smallest, found)

    @property
    def _counts(self) -> bool:
        return self.setting.params.coverage is not None

    @property
    def _failure(self) -> float:
        """Failure probability of each ball, and of the count of all records (union bound)."""
        return self.setting.params.failure / (self.setting.params.k + self._counts)

    def _split(self, share: float, target: int | None = None) -> BudgetSplit:
        """Return the split for one ball.

        At share 1 a ball gets epsilon / sqrt(k), about what k-fold advanced composition allows (Nissim,
        Stemmer and Vadhan 2016, Observation 3.5).
        """
        setting, params = self.setting, self.setting.params
        budget = Budget(share * setting.budget.epsilon / math.sqrt(params.k), setting.budget.delta / params.k)
        one = OneCluster(target or params.target or _NOMINAL, self._failure, "practical", params.shares)
        kind = AnyTarget if self._counts else BudgetSplit
        inner = Setting(setting.grid, one, budget, setting.neighbors, setting.salt)
        return kind(inner, bounded=True, spare=True)

    def _count(self, share: float) -> Laplace:
        """Return the draw that counts all records; it adds nothing where their number is public."""
        neighbors = self.setting.neighbors
        if neighbors.name == "replace_one":
            return Laplace(what="count", scale=0.0, sensitivity=0.0)
        return Laplace.of("count", share * _COUNT * self.setting.budget.epsilon, neighbors.count())

    def _promises(self, share: float) -> Promises:
        split = self._split(share)
        one = guarantee(split, split.draws(1.0)).promises(split)
        if not self._counts:
            return Promises(one.missing, one.radius_factor, one.resolution, one.count_error, None)
        rows_error = math.ceil(self._count(share).scale * math.log(1 / self._failure))
        return Promises(None, None, None, one.count_error, rows_error)

    def _serves(self, share: float, target: int) -> bool:
        """Say whether a target of the first ball is promised, with at least half of it in the ball."""
        split = self._split(share, target)
        return serves(split, (self._split(share) if self._counts else split).draws(1.0))

    def _notes(self, promises: Promises, smallest: int | None) -> tuple[str, ...]:
        params = self.setting.params
        notes = [
            f"The run looks for up to {params.k} balls, one after the other, and stops at the first search "
            "that finds nothing. It always spends the budget of all of them.",
            "Each ball's count leaves out the rows that earlier balls hold.",
        ]
        if params.coverage is not None and smallest is not None:
            needed = math.ceil(smallest * params.k / params.coverage)
            notes.append(
                f"A promise needs about {smallest:,} rows a ball, so {needed:,} rows in all. With fewer rows "
                "the run may find fewer balls."
            )
        if params.coverage is None and promises.missing is None:
            notes.append(
                f"The target {params.target} is too small for a promise at this budget: the run may "
                "find fewer balls, or wider ones. The privacy guarantee is the same."
            )
        return tuple(notes)
