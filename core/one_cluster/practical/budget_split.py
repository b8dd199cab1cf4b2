"""How the practical 1-cluster splits its budget: the share of each round, its sample, and its draws."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from core.budget import Cost, before_sampling
from core.draws import Additive, Gaussian, Laplace
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.mechanisms.exponential import Exponential
from core.one_cluster.params import SHARES, OneCluster
from core.one_cluster.practical.lattice import CELL_BITS
from core.one_cluster.practical.regions import Regions, regions_of
from core.task import Setting

RADIUS_SAMPLE, CENTER_SAMPLE = 8000, 16_000
"""Of `target` records, the expected number that the samples of the level and of the region keep."""

AVERAGES = ("average_1", "average_2")
"""Names of the rounds that move the center to a mean."""

_LATTICE_BELOW = 400  # target times epsilon from which on noisy means are better than a lattice of centers

MOST_FIT = 0.45
"""Largest share of the choice of the radius."""

_SUM = 0.85  # part of an average's epsilon that is spent on the sum; the rest is spent on the count


@dataclass(frozen=True)
class Draws:
    """Every draw of a run. The docstrings of the rounds give the sensitivities.

    `fit` is an exponential mechanism where it chooses center and radius at once. Then there are no averages.
    Otherwise averages move the center, and `fit` chooses the radius alone.
    """

    level: Exponential
    region: Choosing
    sums: tuple[Additive, ...]
    counts: tuple[Laplace, ...]
    fit: AboveThreshold | Exponential
    count: Laplace


@dataclass(frozen=True)
class BudgetSplit:
    """What each round of the practical 1-cluster may spend, and which records it sees.

    Args:
        setting: what is asked for.
        changes: how many changes of the neighbor relation lead from a database to its neighbor.
        bounded: whether the ball must stay about the chosen region; see `FitRadius`.
        spare: whether a part of delta is left for composing these rounds with others.
        tuned: share of the choice of the radius, and the level's part of the share that level and region
            get. Without it both follow from the target.
        samples: whether level and region may be chosen by a secret sample of the records instead of all.
    """

    setting: Setting[OneCluster]
    changes: int = 1
    bounded: bool = False
    spare: bool = False
    tuned: tuple[float, float] | None = None
    samples: bool = True

    @property
    def target(self) -> int:
        """How many records the ball should hold."""
        return self.setting.params.target

    def for_target(self, target: int) -> "BudgetSplit":
        """Return the same split for another target."""
        return replace(
            self, setting=replace(self.setting, params=replace(self.setting.params, target=target))
        )

    @cached_property
    def regions(self) -> Regions:
        """The regions of the grid, at all scales."""
        return regions_of(self.setting.grid)

    def rate(self, sample: int) -> float:
        """Poisson rate at which the target keeps about `sample` records."""
        return min(1.0, sample / self.target) if self.samples else 1.0

    def floor(self, sample: int) -> int:
        """Least clipping floor of the regions' counts: a sixteenth of what the sample keeps of the target."""
        return int(self.rate(sample) * self.target / 16)

    @property
    def clips(self) -> bool:
        """Whether the floor of the regions may be higher than that, as far as promises allow."""
        return True

    @property
    def choice_delta(self) -> float:
        """Delta of the choice of a region. Gaussian sums and compositions of many rounds need delta too."""
        return self.setting.budget.delta * (0.25 if self.gaussian or self.spare else 0.99)

    @property
    def _gaussian_factor(self) -> float:
        return math.sqrt(2 * math.log(1.25 / (self.setting.budget.delta / 4)))

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is smaller than Laplace noise on a sum of d coordinates."""
        return math.sqrt(2 * self.setting.grid.dimension) > self._gaussian_factor

    @property
    def lattice(self) -> bool:
        """Whether center and radius are chosen at once, among a lattice of balls about the chosen region.

        A noisy mean is off by about 1 / (target epsilon) of the region. The lattice is coarser than that
        where the target is large.
        """
        scale = self._between / self.setting.budget.epsilon
        return self.setting.grid.dimension in CELL_BITS and self.target < _LATTICE_BELOW * scale

    @property
    def usual_fit(self) -> float:
        """Share of the fit that makes its error about a 20th of the target, but at least 0.2."""
        return min(MOST_FIT, max(0.2, 200 / (self.target * self.setting.budget.epsilon)))

    def shares(self) -> dict[str, float]:
        """Shares of epsilon of the rounds that there are, by name; they sum to 1.

        - With a lattice there are no averages, and the choice of the ball gets most.
        - In a projection the first average starts from a ball about the whole domain, so the averages get
          most.
        - Otherwise the averages get as much as makes their errors a small part of the region. The rest goes
          to the fit, the level and the region as `tuned` says. Without it the fit gets its usual share, and
          the region gets more than the level, because its choice is among far more candidates.
        """
        expected, d = self.target * self.setting.budget.epsilon, self.setting.grid.dimension
        fit, lean = self.tuned or (self.usual_fit, 0.4)
        average = min((0.69 - fit) / 2, max(0.04, 40 * d / expected))
        rest = 1 - 0.06 - fit - 2 * average
        weights = (rest * lean, rest * (1 - lean), 0.6 * average, 1.4 * average, fit, 0.06)
        if self.lattice:
            weights = (0.31, 0.24, 0, 0, 0.4, 0.05)
        elif self.regions.projected:
            weights = (0.1, 0.12, 0.25, 0.3, 0.2, 0.03)
        asked = self.setting.params.shares or {}
        shares = {
            name: asked.get(name, weight) for name, weight in zip(SHARES, weights, strict=True) if weight > 0
        }
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    def draws(self, share: float) -> Draws:
        """Return the draws that `share` of the budget pays for.

        A replacement is an addition and a removal. So a draw that is calibrated for a single addition or
        removal gets epsilon / 2 (group privacy: two such changes cost (2 epsilon, (1 + e^epsilon) delta)).
        """
        epsilon = {k: v * self.setting.budget.epsilon * share for k, v in self.shares().items()}
        changes, one = self._between, self.changes * self.setting.neighbors.count()
        radius_rate, center_rate = self.rate(RADIUS_SAMPLE), self.rate(CENTER_SAMPLE)
        level = before_sampling(epsilon["good_radius"] / changes, radius_rate)
        center = Cost(epsilon["good_center"], self.choice_delta).per_change(changes)
        averages = () if self.lattice else AVERAGES
        return Draws(
            level=Exponential.of("level", level, spread=2, rate=radius_rate, changes=changes),
            region=Choosing.of(
                "region",
                before_sampling(center.epsilon, center_rate),
                center.delta / center_rate,
                self.regions.most_keys,
                rate=center_rate,
                changes=changes,
            ),
            sums=tuple(self._sum(name, _SUM * epsilon[name]) for name in averages),
            counts=tuple(
                Laplace.of(f"count of {name}", (1 - _SUM) * epsilon[name], one) for name in averages
            ),
            fit=self._fit(epsilon["fit_radius"]),
            count=Laplace.of("count", epsilon["count"], one),
        )

    def _fit(self, epsilon: float) -> AboveThreshold | Exponential:
        """Return what chooses the ball or its radius.

        A replaced record changes no count by more than 1, so AboveThreshold needs no group privacy for it.
        """
        if self.lattice:
            changes = self._between
            return Exponential.of("ball", epsilon / changes, spread=1, changes=changes)
        one = epsilon / self.changes
        return AboveThreshold.of("radius", one, self.setting.neighbors, counts=True, changes=self.changes)

    @property
    def _between(self) -> int:
        """How many additions or removals of a record lead from a database to its neighbor."""
        return self.changes * self.setting.neighbors.changes

    def _sum(self, name: str, epsilon: float) -> Additive:
        """Return the noise of a sum, Gaussian or Laplace, that spends about `epsilon`."""
        what, changes = f"sum of {name}, per step of the ball's radius", self._between
        if self.gaussian:
            return Gaussian.of(what, (epsilon / self._gaussian_factor) ** 2 / 2, changes)
        return Laplace.of(what, epsilon, changes * math.sqrt(self.setting.grid.dimension))
