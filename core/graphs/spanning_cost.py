"""The cost of a minimum spanning tree of a graph whose rows are weighted edges, whatever noise it gets."""

import math
from dataclasses import dataclass

from core.domain import Grid
from core.graphs.cuts import Cuts
from core.graphs.edges import Edges
from core.graphs.found import Promises, Released
from core.graphs.params import MstCost
from core.rounds import Block
from core.task import Accuracy, Method


@dataclass(frozen=True, kw_only=True)
class SpanningCost:
    """Collect the edges, and the cost of their minimum spanning tree.

    With `public`, nodes and edges are public, and the cost is that of a spanning forest. Otherwise every id
    is a node and a missing edge weighs `cap`: an edge more or less is a changed weight.

    Args:
        grid: of u, v and weight.
        public: whether only weights are private.
    """

    grid: Grid
    public: bool
    name: str = "release"
    floor: None = None

    @property
    def cap(self) -> int:
        """Largest weight, grid steps."""
        return self.grid.extents[2]

    def summarize(self, block: Block, state: None) -> Edges:
        """Collect the edges."""
        return Edges.of(block.points)

    def missing(self, cuts: Cuts) -> int:
        """Edges that join what the edges at hand leave apart; none where the edges are public."""
        ids = self.grid.extents[0] + 1
        return 0 if self.public else ids - cuts.nodes + cuts.components - 1

    def cost(self, cuts: Cuts) -> tuple[int, int]:
        """Cost of the spanning tree above its edges' lower bounds, grid steps, and their public number."""
        missing = self.missing(cuts)
        return int(cuts.weights[cuts.tree].sum()) + self.cap * missing, len(cuts.tree) + missing

    def restored(self, value: int, edges: int, scale: float | None) -> Released:
        """Return the answer in data units."""
        kept, step = min(max(value, 0), self.cap * edges), self.grid.step
        return Released(kept * step + edges * self.grid.lower[2], None if scale is None else scale * step)


class SpanningMethod(Method[MstCost]):
    """What both methods share: one round, for which the edge list is brought to one node.

    Under `add_or_remove_one` neighbors differ in one edge more or less, hence in one weight that becomes or
    was the upper bound. A replaced edge is two such changes. Under `change: weight` a replaced row is one.
    """

    def hides(self) -> str | None:
        """See `Method.hides`."""
        return "the weight of one row; its nodes, and every edge, are public" if self.public else None

    @property
    def public(self) -> bool:
        """Whether nodes and edges are public, and only weights are private."""
        return self.setting.params.change == "weight"

    @property
    def changes(self) -> int:
        """How many weights differ between neighbors."""
        neighbors = self.setting.neighbors
        return neighbors.count() if self.public else neighbors.changes

    def promised(self, error: float | None) -> Accuracy:
        """Return the accuracy of a cost within `error` of the truth, data units; None where it is unknown."""
        if self.public:
            means = "Nodes and edges are taken for public, and released through the cost."
        else:
            means = (
                "An edge is hidden, not a node with all of its edges; every id is a node, and a missing edge "
                "weighs the upper bound."
            )
        notes = (means, "The edge list is brought to one node: 16 bytes an edge.")
        return Accuracy(Promises(error), math.inf if error is None else error, notes)
