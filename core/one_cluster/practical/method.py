"""The practical 1-cluster: box counts, noisy averages, and a fitted radius."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from core.budget import Mechanism
from core.draws import charged
from core.errors import InvalidValue
from core.mechanisms.exponential import Exponential
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.budget_split import (
    AVERAGES,
    CENTER_SAMPLE,
    RADIUS_SAMPLE,
    BudgetSplit,
    Draws,
)
from core.one_cluster.practical.guarantee import Guarantee, guarantee, serves, smallest_target, tuned
from core.one_cluster.practical.lattice import CountBall, FitBall
from core.one_cluster.practical.locate import FindRadius, FindRadiusAndRegion, FindRegion, PoissonSample
from core.one_cluster.practical.refine import FitRadius, MoveToMean
from core.task import Accuracy, Method
from core.tightness import Tightness

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PracticalRound = FindRadiusAndRegion | MoveToMean | FitRadius | FitBall | CountBall

_UNKNOWN = Guarantee(
    level_target=1, region_floor=0, target=1, missing=0, found=False, count_error=0, excess=0
)
"""A placeholder where only the draws matter: they don't depend on the thresholds."""


def rounds_of(split: BudgetSplit, draws: Draws, holds: Guarantee) -> tuple[PracticalRound, ...]:
    """Return the rounds, with their draws and the thresholds of `holds`."""
    regions, salt = split.regions, split.setting.salt
    radius_sample = PoissonSample(split.rate(RADIUS_SAMPLE), salt, 1)
    center_sample = PoissonSample(split.rate(CENTER_SAMPLE), salt, 2)
    located = FindRadiusAndRegion(
        FindRadius(regions, radius_sample, holds.level_target, draws.level),
        FindRegion(regions, center_sample, holds.region_floor, draws.region),
    )
    if isinstance(draws.fit, Exponential):
        fit = FitBall(regions, holds.target, holds.penalty, draws.fit)
        return located, fit, CountBall(draws.count, holds.excess, regions if holds.certifies else None)
    averages = [
        MoveToMean(
            regions,
            in_box=regions.projected and name == AVERAGES[0],
            sum=sum_,
            count=count,
            smallest=math.ceil(3 * count.scale),
            name=name,
        )
        for name, sum_, count in zip(AVERAGES, draws.sums, draws.counts, strict=True)
    ]
    fitted = FitRadius(
        regions,
        holds.target,
        draws.fit,
        draws.count,
        holds.excess,
        widens=holds.widens,
        certifies=holds.certifies,
    )
    return located, *averages, fitted


@dataclass(frozen=True)
class Practical(Method[OneCluster]):
    """The practical 1-cluster. It never uses the number of records, not even where this is public.

    Args:
        setting: what is asked for.
        changes: how many changes of the neighbor relation lead from a database to its neighbor.
        bounded: whether the ball must stay about the chosen region, even where few promises follow.
        samples: see `BudgetSplit`.
    """

    name: ClassVar[str] = "practical"

    changes: int = 1
    bounded: bool = False
    samples: bool = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.budget.delta > 0:
            return None
        return InvalidValue("delta", 0, "one_cluster chooses among boxes, which needs a delta above 0")

    def rounds(self, share: float) -> tuple[PracticalRound, ...]:
        """See `Method.rounds`."""
        draws = self._split.draws(share)
        return rounds_of(self._split, draws, guarantee(self._split, draws))

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """See `Method.charges`."""
        return charged(rounds_of(self._split, self._split.draws(share), _UNKNOWN))

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        split = self._split
        holds = guarantee(split, split.draws(share))
        smallest = smallest_target(self._serves)
        error = math.inf if smallest is None else float(smallest)
        promises = holds.promises(split)
        return Accuracy(promises, error, self._notes(holds), smallest, tightness(promises))

    @cached_property
    def _split(self) -> BudgetSplit:
        return tuned(self._plain)

    @property
    def _plain(self) -> BudgetSplit:
        return BudgetSplit(self.setting, self.changes, self.bounded, samples=self.samples)

    def _serves(self, target: int) -> bool:
        split = tuned(self._plain.for_target(target))
        return serves(split, split.draws(1.0))

    def _notes(self, holds: Guarantee) -> tuple[str, ...]:
        setting, notes = self.setting, []
        if not holds.found:
            notes.append(
                f"The target {setting.params.target} is too small for a promise at this budget: the run may "
                "find nothing, or a wider ball. The privacy guarantee is the same."
            )
        elif holds.widens:
            notes.append(
                f"No radius is promised for the target {setting.params.target}: the ball may be much wider "
                "than the smallest one that holds the target."
                + (" The release usually states how many times wider it is at most." * holds.certifies)
            )
        if holds.found:
            notes.append(
                "The promised number of rows allows for data in which many places hold almost as many as the "
                "best one. The release states at_least, a bound for its own ball, which is at most "
                f"{holds.count_error + holds.excess:,} below the number of rows in the ball."
            )
        if self._split.regions.projected:
            notes.append(
                f"With {setting.grid.dimension} columns the boxes cover a random projection of the records: "
                "the number of records in the ball is promised, but its radius is not."
            )
        for what, sample in (("radius", RADIUS_SAMPLE), ("center", CENTER_SAMPLE)):
            rate = self._split.rate(sample)
            if rate < 1:
                notes.append(
                    f"The {what} round counts a secret Poisson sample of rate {rate:.4g}. The accounting "
                    "includes the amplification by sampling."
                )
        return tuple(notes)


def tightness(promises: "DataclassInstance", balls: int = 1) -> dict[str, Tightness]:
    """Return how near errors come to the promises about one of several balls."""
    failing = "a fifth" if balls == 1 else f"1 / {5 * balls:,}"
    of_count = Tightness(
        f"The error of a ball's count gets {failing} of the failure probability, because the search may fail "
        "too. So counts are within the promised error more often than promised.",
        reached=False,
    )
    missing = Tightness(
        "The number of missing rows is promised for data where many regions hold nearly as many rows "
        "as the target. The promise adds up what the level, the choice among all of these regions and the "
        "fit can lose. Where one cluster has few other rows about it, no other region competes, and several "
        "times fewer rows are missing. The release certifies how many a ball holds at least (at_least).",
        reached=False,
    )
    radius = Tightness(
        "The radius factor is promised for the least favorable place of the smallest ball between the "
        "regions that are tried. In most places a smaller region holds the ball, and the released radius is "
        "smaller.",
        reached=False,
    )
    each = {"count_error": of_count, "missing": missing, "radius_factor": radius, "resolution": radius}
    return {name: each[name] for name in each if getattr(promises, name) is not None}
