"""How far answers about graphs are from the truth."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from core.graphs.edges import Edges, WeightedEdges, compact
from pipelines.simulation.measure import Figures, Measure


class TreeCostMeasure(Measure):
    """The cost of a spanning tree, where a missing edge weighs the upper bound."""

    @cached_property
    def _cost(self) -> float:
        edges, nodes = WeightedEdges.of(self.points), self.case.grid.extents[0] + 1
        parent: dict[int, int] = {}

        def root(node: int) -> int:
            while (above := parent.setdefault(node, node)) != node:
                parent[node] = parent[above]
                node = above
            return node

        cost, joined = 0, 0
        for i in np.argsort(edges.weights, kind="stable"):
            u, v = root(int(edges.keys[i] >> 31)), root(int(edges.keys[i] & ((1 << 31) - 1)))
            if u != v:
                parent[u], cost, joined = v, cost + int(edges.weights[i]), joined + 1
        steps = cost + (nodes - 1 - joined) * self.case.grid.extents[2]
        return float(steps * self.case.grid.step + (nodes - 1) * self.case.grid.lower[2])

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return abs(found.value - self._cost)

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        return {} if self.case.params.get("change") == "weight" else {"error": self.error(found)}


class TrianglesMeasure(Measure):
    """The number of triangles."""

    @cached_property
    def _triangles(self) -> float:
        from scipy.sparse import coo_array

        u, v, nodes = compact(Edges.of(self.points).keys)
        ends = np.append(u, v), np.append(v, u)
        matrix = coo_array((np.ones(2 * len(u), dtype=np.int64), ends), shape=(nodes, nodes)).tocsr()
        return float((matrix @ matrix).multiply(matrix).sum() / 6)

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return abs(found.value - self._triangles)

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        return {"error": self.error(found)}
