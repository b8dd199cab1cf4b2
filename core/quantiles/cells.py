"""Noisy counts of neighboring cells, made more accurate by noisy counts of groups of cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from core.draws import Laplace
from core.mechanisms.tails import smallest_bound, some_sum_exceeds, sum_exceeds, variance
from core.noise import Noise
from core.quantiles.descent import Between

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CellScales:
    """Noise of the cells' counts, and of the counts of groups of neighboring cells.

    Args:
        cell: Laplace scale of each cell.
        group: Laplace scale of each group; infinite where groups are not counted.
        size: cells per group.
    """

    cell: float
    group: float = math.inf
    size: int = 1

    def histograms(self, counts: Ints) -> tuple[Ints, ...]:
        """Return the counts of the cells, shape (k,), and those of the groups if groups are counted."""
        if math.isinf(self.group):
            return (counts,)
        return counts, np.add.reduceat(counts, self._firsts(len(counts)))

    def fit(self, noisy: Sequence[Ints], known: int | None = None) -> Floats:
        """Estimate the counts of the cells, shape (k,), consistently with those of the groups.

        A group's total is the average of its noisy count and the sum of its cells' noisy counts, weighted by
        their precision. The difference from that sum is spread evenly over the cells (least squares: Hay,
        Rastogi, Miklau and Suciu 2010).

        Args:
            noisy: the noisy `histograms`.
            known: the number of records, where it is public.
        """
        released = noisy[0].astype(np.float64)
        if len(noisy) > 1:
            firsts = self._firsts(len(released))
            sizes = np.diff(np.append(firsts, len(released)))
            missing = noisy[1] - np.add.reduceat(released, firsts)
            released += np.repeat(missing * self.weight(sizes) / sizes, sizes)
        if known is not None:
            released += (known - released.sum()) / len(released)
        return released

    def _firsts(self, cells: int) -> Ints:
        """First cell of each group."""
        return np.arange(0, cells, self.size)

    def weight(self, sizes: Ints | int) -> Floats:
        """Part of a group's total that its own noisy count decides, for groups of these sizes."""
        cells = sizes * self.cell**2
        return np.asarray(cells / (cells + self.group**2))

    def largest_error(self, cells: int, failure: float, between: Between) -> float:
        """Bound the error of all centered ranks, except with probability `failure`; see `errors_exceed`."""
        return _largest_error(self, cells, failure, between)

    def errors_exceed(self, cells: int, bounds: Floats, between: Between) -> Floats:
        """Bound the probabilities that some centered rank errs by more than a bound.

        A centered rank is a sum of the first counts minus p times the sum of all, at any edge and for any p
        that is asked for. Let F be the noise of the first counts and B that of the others. The error is
        (1 - p) F - p B. If the number of records is public, the fit turns p into the part of the cells that
        come first.

        1. The error is convex in p, so it is largest for the smallest or the largest p. At each edge its
           variance follows from the weights of all draws, which are at most 1. See `some_sum_exceeds`.
        2. Without groups, the error is at most the larger of |F| and |B|. By Levy's inequality, F exceeds a
           bound at some edge with at most twice the probability with which the sum over all cells does. The
           same holds for -F, B and -B.

        Either bound is sound, so the smaller one is returned. Edges and p may depend on the data.

        Args:
            cells: number of cells.
            bounds: at least 0, shape (bounds,).
            between: smallest and largest p; None where the number of records is public.
        """
        variances = np.concatenate([self._variances(cells, p) for p in between or (None,)])
        largest = self.cell if math.isinf(self.group) else max(self.cell, self.group)
        edges = some_sum_exceeds(variances, largest, bounds)
        if math.isinf(self.group):
            edges = np.minimum(edges, 8 * sum_exceeds(cells, self.cell, bounds))
        return np.minimum(1, edges)

    def _variances(self, cells: int, p: float | None) -> Floats:
        """Return the variance of the error of the centered rank at each edge, shape (k + 1,).

        Let an edge come after r of the n cells of its group, whose total the groups' count decides by a part
        w. The error has weight 1 - a on the noise of these r cells, -a on that of the other n - r, and
        w (r / n - p) on that of the group, where a = r w / n + p (1 - w). The totals of the groups before
        have weight 1 - p, and those of the groups behind have weight -p.

        Args:
            cells: number of cells.
            p: see `errors_exceed`; None for the part of the cells that come before the edge.
        """
        edges, firsts = np.arange(cells + 1), self._firsts(cells)
        sizes = np.diff(np.append(firsts, cells))
        own, grouped = variance(self.cell), 0.0 if math.isinf(self.group) else variance(self.group)
        weights = np.zeros(len(sizes)) if math.isinf(self.group) else self.weight(sizes)
        totals = np.append(0, np.cumsum((1 - weights) ** 2 * sizes * own + weights**2 * grouped))
        group = np.minimum(edges // self.size, len(sizes) - 1)
        part = edges / cells if p is None else np.full(cells + 1, p)
        r, n, w = edges - firsts[group], sizes[group], weights[group]
        a = r * w / n + part * (1 - w)
        inside = (r * (1 - a) ** 2 + (n - r) * a**2) * own + (w * (r / n - part)) ** 2 * grouped
        before, behind = totals[group], totals[-1] - totals[group + 1]
        return np.asarray((1 - part) ** 2 * before + inside + part**2 * behind)


@lru_cache(maxsize=1 << 12)  # of many groups, for example
def _largest_error(scales: CellScales, cells: int, failure: float, between: Between) -> float:
    return smallest_bound(lambda bounds: scales.errors_exceed(cells, bounds, between), failure)


@dataclass(frozen=True)
class CellCounts:
    """Draws of the cells' counts, and of the counts of groups of neighboring cells.

    A record is in one cell and one group. So the counts of cells are a histogram, and those of groups too.
    Each histogram changes by 1 in L1 norm if a record is added or removed, and by 2 if one is replaced.

    Args:
        cell: noise of each cell.
        group: noise of each group; None where groups are not counted.
        size: cells per group.
    """

    cell: Laplace
    group: Laplace | None = None
    size: int = 1

    def draws(self) -> tuple[Laplace, ...]:
        """Return the draws of a release."""
        return (self.cell,) if self.group is None else (self.cell, self.group)

    def over(self, cells: int) -> "CellCounts":
        """Return the same draws for another number of cells, with groups of about as many cells as groups."""
        return self if self.group is None else replace(self, size=max(2, math.isqrt(cells)))

    @property
    def scales(self) -> CellScales:
        """The scales of these draws."""
        return CellScales(self.cell.scale, self.group.scale if self.group else math.inf, self.size)

    def release(self, counts: Ints, known: int | None, noise: Noise) -> Floats:
        """Release the counts of neighboring cells, shape (k,): see `CellScales.fit`.

        Args:
            counts: exact counts.
            known: the number of records, where it is public.
            noise: where randomness comes from.
        """
        exact = self.scales.histograms(counts)
        noisy = [draw.add(each, noise) for draw, each in zip(self.draws(), exact, strict=True)]
        return self.scales.fit(noisy, known)


@dataclass(frozen=True)
class Groups:
    """How cells are counted: groups of `size` cells get the part `share` of the counts' epsilon.

    Args:
        size: cells per group; 1 where groups are not counted.
        share: part of epsilon that is spent on groups.
        variance: variance at epsilon 1 of the rank of a quantile's cell, averaged over the quantiles.
    """

    size: int
    share: float
    variance: float

    def counts(self, of: str, epsilon: float, changes: int) -> CellCounts:
        """Return the draws that spend `epsilon`.

        Args:
            of: what the cells are.
            epsilon: what is spent.
            changes: how many additions or removals lead to a neighbor.
        """
        cell = Laplace.of(f"counts of {of}", (1 - self.share) * epsilon, changes)
        if self.share == 0:
            return CellCounts(cell)
        return CellCounts(
            cell, Laplace.of(f"counts of groups of {of}", self.share * epsilon, changes), self.size
        )


def best_groups(probabilities: Floats, cells: Ints, count: int) -> Groups:
    """Find the grouping with the smallest average variance of the ranks.

    The centered rank of a quantile p is a weighted sum of the cells' counts. The weight of a cell is 1 - p
    below the quantile's cell, 1/2 - p for this cell, and -p above it.

    Args:
        probabilities: shape (m,), of the quantiles.
        cells: shape (m,), the cells in which the quantiles are assumed to lie.
        count: number of cells.
    """
    own, columns = cells[:, None], np.arange(count)
    weights = (columns < own) + (columns == own) / 2 - probabilities[:, None]
    best = Groups(1, 0.0, float(2 * (weights**2).sum(axis=1).mean()))
    for size in sorted({round(count ** (i / 8)) for i in range(2, 8)} - {1}):
        firsts = np.arange(0, count, size)
        sizes = np.diff(np.append(firsts, count))
        sums = np.add.reduceat(weights, firsts, axis=1)
        inner = ((weights - np.repeat(sums / sizes, sizes, axis=1)) ** 2).sum(axis=1).mean()
        for share in (0.3, 0.4, 0.5, 0.6, 0.7):
            cell, group = (1 - share) ** -2.0, share**-2.0
            outer = (sums**2 / (sizes**2 * (1 / (sizes * cell) + 1 / group))).sum(axis=1).mean()
            variance = float(2 * (cell * inner + outer))
            if variance < best.variance:
                best = Groups(size, share, variance)
    return best


def ranks_of(counts: Floats) -> tuple[Floats, float]:
    """Return the rank at which each cell starts and the last one ends, ascending, and the sum of all counts.

    The ranks are the ascending sequence closest to the sums of the counts in least squares (isotonic
    regression, as Hay, Rastogi, Miklau and Suciu 2010 use it for sorted counts). The largest error is at most
    that of the sums. Where cells are empty, noise is averaged out.
    """
    sums = np.append(0.0, np.cumsum(counts))
    return np.asarray(scipy.optimize.isotonic_regression(sums).x), float(sums[-1])


def merged(edges: Ints, ranks: Floats, wanted: Floats) -> Ints:
    """Return the edges that separate the wanted ranks, so that hardly more cells than ranks are left.

    - Between two neighboring ranks the edge nearest to their middle stays.
    - A cell of a single point that holds a wanted rank keeps both edges, because the answer is known there.

    Args:
        edges: of all cells, ascending.
        ranks: of these edges, ascending.
        wanted: ascending.
    """
    middles = (wanted[1:] + wanted[:-1]) / 2
    after = np.clip(np.searchsorted(ranks, middles), 1, len(ranks) - 1)
    nearest = np.where(middles - ranks[after - 1] < ranks[after] - middles, after - 1, after)
    own = np.searchsorted(ranks[1:-1], wanted)
    single = own[edges[own + 1] - edges[own] == 1]
    kept = np.unique(np.concatenate([[0, len(edges) - 1], nearest, single, single + 1]))
    return np.asarray(edges[kept])
