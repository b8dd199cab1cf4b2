"""What both methods for the cost of a minimum spanning tree share; rows are weighted edges."""

import math
from dataclasses import dataclass
from typing import Self

from core.domain import Grid
from core.graphs.cuts import Cuts
from core.graphs.found import Promises, Released
from core.graphs.params import MstCost
from core.stored import Store, Stored
from core.task import Accuracy, Method
from core.tightness import Tightness


@dataclass(frozen=True)
class Spanning:
    """What a release needs of a weighted graph.

    Args:
        cost: of the minimum spanning tree, grid steps.
        edges: of the tree.
        sensitivity: of the cost, or a smooth bound of it, grid steps.
    """

    cost: int
    edges: int
    sensitivity: float


@dataclass(frozen=True, kw_only=True)
class SpanningCost:
    """Collect the edges, and compute the cost of their minimum spanning tree on one worker.

    With `public`, nodes and edges are public, and the cost is that of a minimum spanning forest. Otherwise
    every id is a node and a missing edge weighs `cap`. So adding or removing an edge changes one weight.

    Args:
        grid: of u, v and weight.
        public: whether only weights are private.
    """

    grid: Grid
    public: bool
    name: str = "release"
    floor: None = None
    examiners: int = 1
    shards: int = 32

    @property
    def examination(self) -> Self:
        """See `core.rounds.Round`."""
        return self

    @property
    def cap(self) -> int:
        """Largest weight, grid steps."""
        return self.grid.extents[2]

    def arrange(self, aggregate: Stored, store: Store) -> Spanning:
        """Compute the cost and its sensitivity."""
        cuts = Cuts.of(aggregate, self.cap, store.another())
        return Spanning(*self.cost(cuts), self.sensitivity(cuts))

    def examine(self, arranged: Spanning, part: int) -> Spanning:
        """See `core.rounds.Examination`; there is one part."""
        return arranged

    def sensitivity(self, cuts: Cuts) -> float:
        """Compute the sensitivity of the cost, grid steps: one weight changes it by at most `cap`."""
        return float(self.cap)

    def missing(self, cuts: Cuts) -> int:
        """How many missing edges connect the components to one tree; 0 where the edges are public."""
        ids = self.grid.extents[0] + 1
        return 0 if self.public else ids - cuts.graph.nodes + cuts.components - 1

    def cost(self, cuts: Cuts) -> tuple[int, int]:
        """Cost of the spanning tree, where a weight counts from the lower bound, and its number of edges.

        The cost is in grid steps. The number of edges is public.
        """
        missing = self.missing(cuts)
        return cuts.cost + self.cap * missing, len(cuts.tree) + missing

    def restored(self, value: int, edges: int, scale: float | None, within: float | None = None) -> Released:
        """Return the answer in data units."""
        kept, step = min(max(value, 0), self.cap * edges), self.grid.step
        scale, within = (None if steps is None else steps * step for steps in (scale, within))
        return Released(kept * step + edges * self.grid.lower[2], scale, within)


_TIGHTNESS = Tightness(
    "The promised error is reached on all rows whose cost is far from the smallest and the largest possible "
    "one: the noise does not depend on them. Near these two, released costs are clipped, and errors are "
    "smaller.",
    reached=True,
)


class SpanningMethod(Method[MstCost]):
    """What both methods share: one round, in which one worker finds the tree among the merged edges.

    Under `add_or_remove_one` neighbors differ in one added or removed row. So at most one weight differs,
    where a missing edge has the upper bound as its weight. A replaced row is two such changes. With
    `change: weight` a replaced row is one changed weight.
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
        """How many weights differ between neighbors, at most."""
        neighbors = self.setting.neighbors
        return neighbors.count() if self.public else neighbors.changes

    def promised(self, error: float | None) -> Accuracy:
        """Return the accuracy of a cost within `error` of the truth, data units; None where it is unknown."""
        if self.public:
            means = "Nodes and edges are treated as public: the cost may reveal them."
        else:
            grid = self.setting.grid
            means = (
                "The release hides one edge, not a node with all of its edges. Every id is a node, which "
                f"makes {grid.extents[0] + 1:,} of them in steps of {grid.step:.9g}, and a missing edge "
                "weighs the upper bound."
            )
        notes = (means,)
        tightness = {} if error is None else {"error": _TIGHTNESS}
        return Accuracy(Promises(error), math.inf if error is None else error, notes, tightness=tightness)
