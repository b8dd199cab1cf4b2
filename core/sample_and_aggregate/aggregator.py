"""What all aggregators share: how many blocks agree, the radius about their answers, and the promises."""

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

    A privacy unit falls into one block, by its identity. So adding or removing a unit changes one answer. A
    replaced unit may fall into another block than before, so it changes up to two answers.
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
        """Return how the radius is released: no wider than needed to hold the stable answers.

        The answers that are not stable may be arbitrarily far away, so a radius that holds more than the
        stable answers may be arbitrarily large. The mechanism may miss its target by its rank error. So its
        target is the number of stable answers minus the rank error.
        """
        epsilon = RADIUS_SHARE * self.per_answer(share).epsilon
        choice = Exponential.of("radius", epsilon, 2, changes=self.changes)
        aimed = StableRadius(self.setting.grid, self.stable, choice)
        return replace(aimed, target=max(1, self.stable - self._rank_error(aimed)))

    def promised(self, part: float, radius: StableRadius) -> Accuracy:
        """Return the accuracy of a method whose `Promises.leftover` is `part` of the widest axis.

        The error is this leftover, or one grid step if that is larger.
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
    """Bound the part of a center's noise that remains even where all stable answers are equal.

    Args:
        noise: the noise of the center.
        spare: how many answers may change before the center can leave the stable answers. Below 0, the center
            may be outside of them already.
        failure: probability that the noise is larger than the bound.
        widths: the largest possible sensitivity, in widths of the widest axis.

    Returns:
        The bound, as a part of the widest axis; at most 1.
    """
    if spare < 0:
        return 1.0
    return min(1.0, widths * noise.scale(math.exp(-noise.beta * spare)) * noise.tail(failure))
