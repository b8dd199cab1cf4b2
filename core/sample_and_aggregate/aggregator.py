"""What all aggregators share: the blocks that agree, the radius about them, and what is promised of both."""

import math
from dataclasses import replace

from core.budget import Cost
from core.mechanisms.admissible import Admissible
from core.mechanisms.exponential import Exponential
from core.sample_and_aggregate.found import Promises
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.stable_radius import StableRadius
from core.task import Accuracy, Method

RADIUS_SHARE = 0.2
"""Part of epsilon that is spent on the radius about a released center."""


class Aggregator(Method[SampleAndAggregate]):
    """One round on the answers of all blocks, which are its records.

    Each unit is in one block, by its identity, so one more or less changes one answer. A replaced one may
    fall into another block, and changes two answers.
    """

    @property
    def stable(self) -> int:
        """Blocks that are expected to agree."""
        params = self.setting.params
        return max(1, math.floor(params.stable_fraction * params.blocks))

    @property
    def changes(self) -> int:
        """How many answers differ between neighbors."""
        return self.setting.neighbors.changes

    def per_answer(self, share: float) -> Cost:
        """Return what the round may cost where one answer changes."""
        budget = self.setting.budget
        return Cost(share * budget.epsilon, budget.delta).per_change(self.changes)

    def radius(self, share: float) -> StableRadius:
        """Return how the radius is released: no wider than what holds the stable answers.

        All others may be anywhere, so it aims at fewer answers by as many as it may hold in excess.
        """
        epsilon = RADIUS_SHARE * self.per_answer(share).epsilon
        choice = Exponential.of("radius", epsilon, 2, changes=self.changes)
        aimed = StableRadius(self.setting.grid, self.stable, choice)
        return replace(aimed, target=max(1, self.stable - self._rank_error(aimed)))

    def promised(self, part: float, radius: StableRadius) -> Accuracy:
        """Return the accuracy where `part` of the widest axis is left over; see `Promises`.

        The error is what is left over, at least a step.
        """
        leftover = self.width(part)
        promises = Promises(leftover, 2 * self._rank_error(radius))
        return Accuracy(promises, max(self.setting.grid.step, leftover))

    def width(self, part: float) -> float:
        """Return a part of the widest axis in data units."""
        return part * max(self.setting.grid.extents) * self.setting.grid.step

    def _rank_error(self, radius: StableRadius) -> int:
        return radius.rank_error(self.setting.params.failure / 2)


def vanishing(noise: Admissible, spare: int, failure: float, widths: float) -> float:
    """Return the noise of a center, as a part of the widest axis, whatever the answers that are not stable.

    Args:
        noise: of the center.
        spare: how many answers may change before the center leaves the stable ones; below 0 where it need not
            be among them.
        failure: probability that the noise is larger.
        widths: the largest sensitivity, in widths of the widest axis.
    """
    if spare < 0:
        return 1.0
    return min(1.0, widths * noise.scale(math.exp(-noise.beta * spare)) * noise.tail(failure))
