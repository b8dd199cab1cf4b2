"""How the practical 1-cluster splits its budget: the share of each round, its sample, and its draws."""

import math
from dataclasses import dataclass, replace

from core.budget import Cost, before_sampling
from core.draws import Additive, Gaussian, Laplace
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import Choosing
from core.one_cluster.params import SHARES, OneCluster
from core.one_cluster.practical.boxes import Boxes
from core.task import Setting

RADIUS_SAMPLE, CENTER_SAMPLE = 2000, 8000
"""Of `target` records, the expected number that the samples of the first and the second round keep."""

AVERAGES = ("average_1", "average_2")
"""Names of the rounds that move the center to a mean."""

_SUM = 0.85  # part of an average's epsilon that is spent on the sum; the rest is spent on the count


@dataclass(frozen=True)
class Draws:
    """Every draw of a run. The docstrings of the rounds give the sensitivities."""

    level: AboveThreshold
    box: Choosing
    sums: tuple[Additive, ...]
    counts: tuple[Laplace, ...]
    radius: AboveThreshold
    count: Laplace


@dataclass(frozen=True)
class BudgetSplit:
    """What each round of the practical 1-cluster may spend, and which records it sees.

    Args:
        setting: what is asked for.
        changes: how many changes of the neighbor relation lead from a database to its neighbor.
    """

    setting: Setting[OneCluster]
    changes: int = 1

    @property
    def target(self) -> int:
        """How many records the ball should hold."""
        return self.setting.params.target

    def for_target(self, target: int) -> "BudgetSplit":
        """Return the same split for another target."""
        return replace(
            self, setting=replace(self.setting, params=replace(self.setting.params, target=target))
        )

    @property
    def boxes(self) -> Boxes:
        """The boxes of the grid, at all scales."""
        return Boxes(self.setting.grid)

    def rate(self, sample: int) -> float:
        """Poisson rate at which the target keeps about `sample` records."""
        return min(1.0, sample / self.target)

    def floor(self, sample: int) -> int:
        """Clipping floor of box counts: an eighth of the target's expected number in the sample."""
        return int(self.rate(sample) * self.target / 8)

    @property
    def choice_delta(self) -> float:
        """Part of delta that is spent on choosing a box."""
        return self.setting.budget.delta / 4

    @property
    def _gaussian_factor(self) -> float:
        return math.sqrt(2 * math.log(1.25 / (self.setting.budget.delta / 4)))

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is smaller than Laplace noise on a sum of d coordinates."""
        return math.sqrt(2 * self.setting.grid.dimension) > self._gaussian_factor

    def shares(self) -> dict[str, float]:
        """Shares of epsilon, by name; they sum to 1.

        By default the fit gets as much as makes its error about a 20th of the target, but at least 0.2 and
        at most 0.45.
        """
        fit = min(0.45, max(0.2, 200 / (self.target * self.setting.budget.epsilon)))
        average = (1 - 0.15 - 0.10 - 0.06 - fit) / 2
        shares = dict(zip(SHARES, (0.15, 0.10, average, average, fit, 0.06), strict=True))
        shares |= self.setting.params.shares or {}
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
        radius = 2 / before_sampling(epsilon["good_radius"] / changes, radius_rate)
        center = Cost(epsilon["good_center"], self.choice_delta).per_change(changes)
        fit = 2 * changes / epsilon["fit_radius"]
        return Draws(
            level=AboveThreshold(
                what="level",
                threshold_scale=radius,
                query_scale=radius,
                monotone=True,
                rate=radius_rate,
                changes=changes,
            ),
            box=Choosing.of(
                "box",
                before_sampling(center.epsilon, center_rate),
                center.delta / center_rate,
                len(self.boxes.offsets(fine=True)),
                rate=center_rate,
                changes=changes,
            ),
            sums=tuple(self._sum(name, _SUM * epsilon[name]) for name in AVERAGES),
            counts=tuple(
                Laplace.of(f"count of {name}", (1 - _SUM) * epsilon[name], one) for name in AVERAGES
            ),
            radius=AboveThreshold(
                what="radius", threshold_scale=fit, query_scale=fit, monotone=True, changes=changes
            ),
            count=Laplace.of("count", epsilon["count"], one),
        )

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
