"""The number of triangles, with noise by its smooth sensitivity."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from core.draws import Charged, Draw
from core.graphs.common_neighbors import examine_part
from core.graphs.edges import Edges
from core.graphs.found import Promises, Released
from core.graphs.params import Triangles
from core.graphs.ranked import Ranked
from core.graphs.wedges import Wedges
from core.mechanisms.smooth_bound import smooth_bound
from core.mechanisms.smooth_noise import SmoothNoise, calibrate_smooth
from core.noise import Noise
from core.rounds import Block
from core.stored import Store, Stored
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

    One worker arranges the merged edges as rows of neighbors, and each part of the counting reads all of
    these, a part at a time. So only the count and the few pairs (a, b) that matter reach the release.

    Args:
        nodes: number of possible nodes, public.
        smooth: the draws.
        examiners: in how many parts workers count.
        shards: in how many parts the edges are merged.
    """

    nodes: int
    smooth: SmoothNoise
    purpose: ClassVar[str] = (
        "the number of triangles, with noise that follows how much one row could change it"
    )
    growing: ClassVar[str] = "some 60 bytes for each node, and 50 for each neighbor of the node with most"
    name: str = "release"
    floor: None = None
    examiners: int = 8
    shards: int = 32

    @property
    def examination(self) -> Self:
        """See `core.rounds.Round`."""
        return self

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.smooth.draws()

    def summarize(self, block: Block, state: None) -> Edges:
        """Collect the edges."""
        return Edges.of(block.points)

    def arrange(self, aggregate: Stored, store: Store) -> Ranked:
        """See `core.rounds.Examination`."""
        return Ranked.of(aggregate, store)

    def examine(self, arranged: Ranked, part: int) -> Wedges:
        """See `core.rounds.Examination`."""
        return examine_part(arranged, self.nodes, part, self.examiners)

    def release(self, aggregate: Wedges, state: None, noise: Noise) -> Released:
        """Release the count, and the scale of its noise where that is paid for."""
        wedges, bound = aggregate, self.sensitivity(aggregate)
        most = min(_MOST, self.nodes * (self.nodes - 1) * (self.nodes - 2) // 6)
        value = self.smooth.value(wedges.triangles, bound, 0, most, noise)
        scale = self.smooth.scale(bound, noise)
        return Released(float(value), scale, self.smooth.within(scale))

    def sensitivity(self, wedges: Wedges) -> float:
        """Compute the smooth sensitivity."""
        beta = self.smooth.noise.beta
        peaks = wedges.peaks(self.nodes, beta)
        return smooth_bound(lambda s, _: wedges.local(s, self.nodes), max(0, self.nodes - 2), beta, peaks)


class SmoothTriangles(Method[Triangles]):
    """Noise by smooth sensitivity, in one round: workers collect distinct edges, and count.

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
        notes = ("A row is an edge: the release hides one edge, not a node with all of its edges.",)
        return Accuracy(Promises(), math.inf, notes)
