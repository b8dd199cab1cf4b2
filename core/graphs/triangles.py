"""The number of triangles, with noise by its smooth sensitivity."""

import math
from dataclasses import dataclass
from typing import ClassVar

from core.draws import Charged, Draw
from core.graphs.edges import Edges
from core.graphs.found import Promises, Released
from core.graphs.params import Triangles
from core.graphs.wedges import Wedges, count_wedges
from core.mechanisms.smooth_bound import smooth_bound
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy, Method

_MOST = 2**62
_DOUBLING = 50.0  # edges to change until a pair with many common neighbors has twice as many


@dataclass(frozen=True)
class CountTriangles:
    """Release the number of triangles with noise by its smooth sensitivity. Neighbors differ in one edge.

    For a pair of nodes let a be the number of their common neighbors, and b the number of nodes that are
    neighbors of exactly one of them.

    1. Adding or removing the edge between the pair changes the number of triangles by a.
    2. s other changed edges can raise a by floor((s + min(s, b)) / 2), up to nodes - 2.
    3. So the largest local sensitivity within s changes is

        A(s) = max over pairs of min(a + floor((s + min(s, b)) / 2), nodes - 2)

    (Nissim, Raskhodnikova and Smith 2007, Claim 3.13). This is exact. For each a only the largest b matters.

    Args:
        nodes: number of possible nodes, public.
        smooth: the draws.
    """

    nodes: int
    smooth: SmoothNoise
    purpose: ClassVar[str] = (
        "the number of triangles, with noise that follows how much one row could change it"
    )
    name: str = "release"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    def summarize(self, block: Block, state: None) -> Edges:
        """Collect the edges."""
        return Edges.of(block.points)

    def release(self, aggregate: Edges, state: None, noise: Noise) -> Released:
        """Release the count, and the scale of its noise where that is paid for."""
        wedges = count_wedges(aggregate, self.nodes)
        bound = self.sensitivity(wedges)
        most = min(_MOST, self.nodes * (self.nodes - 1) * (self.nodes - 2) // 6)
        value = self.smooth.value(wedges.triangles, bound, 0, most, noise)
        return Released(float(value), self.smooth.scale(bound, noise))

    def sensitivity(self, wedges: Wedges) -> float:
        """Compute the smooth sensitivity."""
        beta = self.smooth.noise.beta
        peaks = wedges.peaks(self.nodes, beta)
        return smooth_bound(lambda s, _: wedges.local(s, self.nodes), max(0, self.nodes - 2), beta, peaks)


class SmoothTriangles(Method[Triangles]):
    """Noise by smooth sensitivity, in one round: workers collect distinct edges, one machine counts.

    Neighbors differ in one added or removed edge. A replaced edge is two such changes. The size of the noise
    depends on the data, so nothing is promised.
    """

    name: ClassVar[str] = "smooth"

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        grid, budget = self.setting.grid, self.setting.budget
        smooth = calibrate_smooth(
            self.setting.params,
            share * budget.epsilon,
            budget.delta,
            self.setting.neighbors.changes,
            _DOUBLING,
        )
        return (CountTriangles(grid.extents[0] + 1, smooth),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        notes = (
            "A row is an edge: the release hides one edge, not a node with all of its edges.",
            "The edge list is brought to one machine, which counts: 16 bytes an edge on the way, some "
            "hundred there. Millions of edges take seconds, unless nodes have edges to a good part of all "
            "others.",
        )
        return Accuracy(Promises(), math.inf, notes)
