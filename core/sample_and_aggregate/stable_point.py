"""The 1-cluster of the blocks' answers: a small ball that holds a part of them, even a minority."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.domain import Points
from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.found import Found
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.method import Practical
from core.plan import Plan
from core.rounds import Block, run_in_memory
from core.sample_and_aggregate.aggregator import Aggregator
from core.sample_and_aggregate.found import Stable, Unstable
from core.sample_and_aggregate.outputs import Aggregation
from core.task import Accuracy, Setting, planned
from core.tightness import Tightness

# There are few answers, so the rounds that find the cluster get nearly all of epsilon.
_SHARES = {
    "good_radius": 0.4,
    "good_center": 0.3,
    "average_1": 0.05,
    "average_2": 0.05,
    "fit_radius": 0.19,
    "count": 0.01,
}


@dataclass(frozen=True, kw_only=True)
class StablePoint(Aggregation):
    """Release center and radius of the 1-cluster of the answers (Nissim, Stemmer and Vadhan 2016, Section 6).

    The published algorithm samples records first, so that the stable point holds for the distribution that
    the records come from. Privacy does not need this step, because a record is in one block only.

    Args:
        rounds: of the 1-cluster, which start without a state.
    """

    purpose: ClassVar[str] = "a small ball that holds the stable part of the blocks' answers"
    rounds: tuple[Charged, ...]

    def value_draws(self) -> tuple[Draw, ...]:
        """See `Aggregation.value_draws`: the draws of all rounds."""
        return tuple(draw for step in self.rounds for draw in step.draws())

    def aggregate(self, points: Points, noise: Noise) -> Stable | Unstable:
        """Run all rounds of the 1-cluster on the answers."""
        answers = Block(points, np.arange(self.blocks, dtype=np.uint64))
        found = run_in_memory(self.rounds, [answers], None, noise)
        return Stable(found.center, found.radius) if isinstance(found, Found) else Unstable()


class ClusterOfAnswers(Aggregator):
    """The 1-cluster of the answers. No other aggregator finds a point that only a minority agrees on."""

    name: ClassVar[str] = "one_cluster"
    of_errors: ClassVar[Tightness] = Tightness(
        "No errors are promised; the radius says how near the value is.",
        reached=False,
    )
    calibrated: ClassVar[bool] = False
    own_radius: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.budget.delta > 0:
            return None
        return InvalidValue("delta", 0, "one_cluster chooses among boxes, which needs a delta above 0")

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (StablePoint(**self.common(share), rounds=self._inner.rounds),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        If the stable fraction is at most 1/2, the error is 0, even where no ball is promised. So `auto` then
        takes this aggregator: no other one can find a point that so few blocks agree on. Otherwise it has the
        error of a method that promises nothing about the value: its ball has one radius for all axes.
        """
        missing = self._inner.promises["missing"]
        minority = self.setting.params.stable_fraction <= 0.5
        common = self.promised(share, None)
        promises = replace(common.promises, radius_blocks=None if missing is None else int(missing))
        notes = (*common.notes, *self._inner.notes)
        tightness = dict(common.tightness)
        if missing is not None:
            tightness["radius_blocks"] = self._inner.tightness["missing"]
        error = 0.0 if minority else common.error
        return replace(common, promises=promises, error=error, notes=notes, tightness=tightness)

    @cached_property
    def _inner(self) -> Plan:
        """The plan of the 1-cluster on the database of answers, whose neighbors replace one answer."""
        setting, one_replaced = self.setting, Neighbors("replace_one")
        target = OneCluster(self.stable, self.value_failure, "practical", _SHARES)
        budget = replace(setting.budget, epsilon=(1 - self.failures_share) * setting.budget.epsilon)
        inner = Setting(setting.grid, target, budget, one_replaced, setting.salt)
        # Blocks that are numbered alike would be in the samples of all groups at once.
        return planned(Practical(inner, changes=self.changes, bounded=True, samples=False))
