"""The 1-cluster of the blocks' answers: a small ball that holds a part of them, even a minority."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.draws import Charged, Draw
from core.errors import InvalidValue
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.method import Practical
from core.plan import Plan
from core.rounds import Block, run_in_memory
from core.sample_and_aggregate.aggregator import Aggregator
from core.sample_and_aggregate.found import Promises, Stable
from core.sample_and_aggregate.outputs import Aggregation, Outputs
from core.task import Accuracy, Setting, planned

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

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`: those of all rounds."""
        return tuple(draw for step in self.rounds for draw in step.draws())

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable | NotFound:
        """Run all rounds of the 1-cluster on the answers."""
        answers = Block(self.table(aggregate), np.arange(self.blocks, dtype=np.uint64))
        found = run_in_memory(self.rounds, [answers], None, noise)
        return Stable(found.center, found.radius) if isinstance(found, Found) else NotFound()


class ClusterOfAnswers(Aggregator):
    """The 1-cluster of the answers. No other aggregator finds a point that only a minority agrees on."""

    name: ClassVar[str] = "one_cluster"
    calibrated: ClassVar[bool] = False

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.budget.delta > 0:
            return None
        return InvalidValue("delta", 0, "one_cluster chooses among boxes, which needs a delta above 0")

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        setting = self.setting
        return (StablePoint(grid=setting.grid, blocks=setting.params.blocks, rounds=self._inner.rounds),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The error is `Promises.leftover`, or one grid step if that is larger. If the stable fraction is at
        most 1/2, the error is 0, even where no ball is promised. So `auto` then takes this aggregator: no
        other one can find a point that so few blocks agree on.
        """
        grid, params, missing = self.setting.grid, self.setting.params, self._inner.promises["missing"]
        leftover = self.width(1.0) if missing is None else 0.0
        promises = Promises(leftover, params.blocks if missing is None else int(missing))
        error = 0.0 if params.stable_fraction <= 0.5 else max(grid.step, leftover)
        return Accuracy(promises, error, self._inner.notes)

    @cached_property
    def _inner(self) -> Plan:
        """The plan of the 1-cluster on the database of answers, whose neighbors replace one answer."""
        setting, one_replaced = self.setting, Neighbors("replace_one")
        target = OneCluster(self.stable, setting.params.failure, "practical", _SHARES)
        inner = Setting(setting.grid, target, setting.budget, one_replaced, setting.salt)
        return planned(Practical(inner, changes=self.changes))
