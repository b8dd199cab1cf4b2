"""The cost of a minimum spanning tree, with noise by its global sensitivity."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.draws import Charged, Draw, Laplace
from core.graphs.edges import WeightedEdges
from core.graphs.found import Released
from core.graphs.spanning_cost import Spanning, SpanningCost, SpanningMethod
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy


@dataclass(frozen=True, kw_only=True)
class GlobalCost(SpanningCost):
    """Release the cost with discrete Laplace noise.

    Sensitivity. A missing edge weighs `cap`, and of equal edges the lightest counts. So an added row lowers
    one weight or none, and the cost falls by 0 to `cap`. A removed row raises the cost by as much. A replaced
    row does both, so it changes the cost by at most `cap`, too. With `public`, it changes one weight.

    Args:
        total: noise of the cost, grid steps.
    """

    purpose: ClassVar[str] = (
        "the cost of a minimum spanning tree, under noise for the most that one row can change any cost"
    )
    growing: ClassVar[str] = "some 20 bytes for each node"
    total: Laplace

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.total,)

    def summarize(self, block: Block, state: None) -> WeightedEdges:
        """Collect the edges that may be in the minimum spanning forest."""
        return WeightedEdges.of(block.points, forest=True)

    def release(self, aggregate: Spanning, state: None, noise: Noise) -> Released:
        """Release the cost and the public scale of its noise."""
        value = int(self.total.add(np.array([aggregate.cost], dtype=np.int64), noise)[0])
        return self.restored(value, aggregate.edges, self.total.scale)


class GlobalSensitivity(SpanningMethod):
    """Laplace noise by the upper bound of a weight.

    A single node with only one edge suffices to make the smooth sensitivity at least half of the global one.
    """

    name: ClassVar[str] = "global"
    calibrated: ClassVar[bool] = False

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (GlobalCost(grid=self.setting.grid, public=self.public, total=self._total),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        setting = self.setting
        return self.promised(
            math.ceil(self._total.scale * math.log(1 / setting.params.failure)) * setting.grid.step
        )

    @property
    def _total(self) -> Laplace:
        return Laplace.of("cost", self.setting.budget.epsilon, self.setting.grid.extents[2])
