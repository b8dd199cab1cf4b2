"""The cost of a minimum spanning tree, with noise by its smooth sensitivity."""

from dataclasses import dataclass
from typing import ClassVar

from core.draws import Charged, Draw
from core.graphs.cuts import Cuts
from core.graphs.edges import WeightedEdges
from core.graphs.found import Released
from core.graphs.spanning_cost import Spanning, SpanningCost, SpanningMethod
from core.mechanisms.smooth_bound import smooth_bound
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy

_DOUBLING = 10.0  # weights to change until the local sensitivity doubles


@dataclass(frozen=True, kw_only=True)
class SmoothCost(SpanningCost):
    """Release the cost with noise by its smooth sensitivity, where neighbors differ in one weight.

    Args:
        smooth: the draws.
    """

    purpose: ClassVar[str] = (
        "the cost of a minimum spanning tree, under noise that follows how much one row could change it"
    )
    growing: ClassVar[str] = "some 40 bytes for each node"
    smooth: SmoothNoise

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    def summarize(self, block: Block, state: None) -> WeightedEdges:
        """Collect the edges."""
        return WeightedEdges.of(block.points)

    def release(self, aggregate: Spanning, state: None, noise: Noise) -> Released:
        """Release the cost, and the scale of its noise where that is paid for."""
        cost, edges, bound = aggregate.cost, aggregate.edges, aggregate.sensitivity
        value = self.smooth.value(cost, bound, 0, self.cap * edges, noise)
        scale = self.smooth.scale(bound, noise)
        return self.restored(value, edges, scale, self.smooth.within(scale))

    def sensitivity(self, cuts: Cuts) -> float:
        """Compute the smooth sensitivity, grid steps; `cap` where a missing edge is in the tree."""
        beta = self.smooth.noise.beta
        if self.missing(cuts) > 0:
            return float(self.cap)
        return smooth_bound(cuts.local, self.cap if len(cuts.tree) else 0, beta)


class SmoothSensitivity(SpanningMethod):
    """Noise by smooth sensitivity, which is small where every node has several light edges.

    How large the noise is depends on the data, so no error is promised.
    """

    name: ClassVar[str] = "smooth"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        setting, budget = self.setting, self.setting.budget
        smooth = calibrate_smooth(
            setting.params, share * budget.epsilon, budget.delta, self.changes, _DOUBLING
        )
        return (SmoothCost(grid=setting.grid, public=self.public, smooth=smooth),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        return self.promised(None)
