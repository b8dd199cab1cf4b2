"""Quantiles of a window of points by counts down a tree: only nodes that hold a quantile are cut further."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from core.counted_points import Ranks
from core.mechanisms.tails import smallest_bound, some_sum_exceeds, variance

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Nodes = dict[int, tuple[float, float | None]]
"""First point of each node: the records before it and in it, as far as known."""

Between = tuple[float, float] | None
"""The smallest and the largest part of all records that is sought; None where their number is known."""

Count = Callable[[Ints, int], Ints]
"""Adds noise to the counts of disjoint nodes of a level; the level is counted from 0, below the root."""


@dataclass(frozen=True)
class Shape:
    """A tree of equal fan-out whose leaves are points.

    The figures below are for noise of scale 1 if all of epsilon is spent on one level. A tree of L levels
    has L times this noise on each level.

    Args:
        fan_out: children of a node.
        levels: levels below the root.
    """

    fan_out: int
    levels: int

    @property
    def variance(self) -> float:
        """Variance of a centered rank at an edge, averaged over all edges: 2 L^2 (L f / 6).

        A level adds the bridge of the noise of a node's children: the noise of the first of them, minus
        their part of the noise of all. At child i of f the squares of its weights sum to i (1 - i / f).
        """
        return self.levels**3 * self.fan_out / 3

    def largest_error(
        self, scale: float, failure: float, searches: int = 1, between: Between = None
    ) -> float:
        """Bound the rank errors of all quantiles of one tree, but for `failure`; see `errors_exceed`."""
        return smallest_bound(lambda bounds: self.errors_exceed(scale, bounds, searches, 1, between), failure)

    def errors_exceed(
        self, scale: float, bounds: Floats, searches: int, trees: int, between: Between = None
    ) -> Floats:
        """Bound the probabilities that the rank error of some quantile exceeds a bound.

        Let a quantile have rank r, and let u be the first point below which there are more than r + t
        records. Its search ends at u or above only if it leaves the path from the root to u upward. Then an
        edge between children of a node on this path has a noisy rank of at most r, although more than r + t
        records are below it. Likewise for ranks that are too small. Which edges these are depends on the
        data but not on the noise. A node has f - 1 edges between children, so on each level of a path at most
        f - 1 of them can fail in either direction. Paths that share a node share its edges, so no more nodes
        count than a level has.

        The noise at an edge lies between the noise at its parent's two edges, plus that of the bridge. The
        squares of the bridge's weights sum to i (1 - i / f) at child i, and to at most f / 4.

        If the number of records is not known, each sought rank is a part p of its noisy value. Then the noise
        at an edge counts less p times the noise of that value. This is convex in p, so every edge counts for
        the smallest and for the largest p. At child i of the root the squares of the weights sum to
        i (1 - 2 p) + p^2 f. The root's own two ends, i = 0 and f, err then too, and count as edges.

        The bound adds up the failures of all edges. It allows for data in which no child on the path but one
        has records, so that all edges of a node compete.

        Args:
            scale: of the noise of each level.
            bounds: at least 0, shape (bounds,).
            searches: number of quantiles.
            trees: number of trees of this shape in which they are sought.
            between: smallest and largest p; None where the records of the root are known.
        """
        f, child, ends = self.fan_out, np.arange(1, self.fan_out), np.arange(self.fan_out + 1)
        most, bridge = f / 4, np.ceil(64 * child * (1 - child / f) / f) / 64 * f  # few values
        parts = sorted(set(between or ()))
        roots = [ends * (1 - 2 * p) + p**2 * f for p in parts] or [bridge]
        above = f * max(max(p, 1 - p) ** 2 for p in parts) if parts else most
        variances = [*roots, *(above + level * most + bridge for level in range(self.levels - 1))]
        nodes = [float(min(searches, trees))] * len(roots)
        nodes += [min(searches, len(roots) * trees * float(f) ** level) for level in range(1, self.levels)]
        times = np.repeat(nodes, [len(each) for each in variances])
        return some_sum_exceeds(np.concatenate(variances) * variance(scale), scale, bounds, times)


def shapes(size: int) -> list[Shape]:
    """Return the trees of the smallest fan-outs for 1, 2, ... levels over `size` points, none above 4,096."""
    most = max(1, math.ceil(math.log2(size)))
    fan_outs = (math.ceil(size ** (1 / levels) - 1e-9) for levels in range(1, 1 + most))
    return [Shape(f, levels_of(size, f)) for f in sorted({f for f in fan_outs if 2 <= f <= 4096})]


def levels_of(size: int, fan_out: int) -> int:
    """Levels of a tree of this fan-out over `size` leaves."""
    levels, width = 0, 1
    while width < size:
        levels, width = levels + 1, width * fan_out
    return levels


def descend(
    order: Ranks,
    window: tuple[int, int],
    shape: Shape,
    root: tuple[float, float | None],
    ranks: Callable[[float], Floats],
    count: Count,
) -> list[int]:
    """Find a point of the window for each quantile.

    From the root down:

    1. Count the children of every node that holds a quantile, with noise.
    2. Shift the counts of a node's children evenly, so that they sum to the node's count.
    3. Move each quantile to the child where the sum of the counts reaches the quantile's rank.

    Args:
        order: all records.
        window: first point, and the point after the last.
        shape: the tree over the window's points.
        root: records before the window, and in it; None where that is not known.
        ranks: ranks that are sought, given the number of records up to the window's end.
        count: adds the noise.
    """
    (low, high), width = window, shape.fan_out**shape.levels
    nodes: Nodes = {low: root}
    wanted: Floats | None = None
    steps: list[int] = []
    for level in range(shape.levels):
        below = width // shape.fan_out
        starts = [list(range(first, min(first + width, high), below)) for first in nodes]
        edges = [
            np.array([*here, min(first + width, high)]) for first, here in zip(nodes, starts, strict=True)
        ]
        at_once = order.ranks_at(np.concatenate(edges))  # which may read all records
        exact = [np.diff(ranks) for ranks in np.split(at_once, np.cumsum([len(each) for each in edges[:-1]]))]
        noisy = count(np.concatenate(exact), level).astype(np.float64)
        children = {}
        parts = np.split(noisy, np.cumsum([len(here) for here in starts[:-1]]))
        for (first, (before, total)), here, counts in zip(nodes.items(), starts, parts, strict=True):
            if total is not None:
                counts += (total - counts.sum()) / len(counts)
            children[first] = here, before + np.append(0.0, np.cumsum(counts))
        if wanted is None:
            wanted = ranks(float(children[low][1][-1]))
            steps = [low] * len(wanted)
        fitted = {first: _fitted(sums[:-1]) for first, (_, sums) in children.items()}
        nodes, width = {}, below
        for i, rank in enumerate(wanted):
            here, sums = children[steps[i]]
            child = int(np.searchsorted(fitted[steps[i]][1:], rank))
            steps[i] = here[child]
            nodes[steps[i]] = float(sums[child]), float(sums[child + 1] - sums[child])
    return steps


def _fitted(sums: Floats) -> Floats:
    return np.asarray(scipy.optimize.isotonic_regression(sums).x)
