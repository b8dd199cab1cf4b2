"""Noisy counts of neighboring cells, made more accurate by noisy counts of groups of cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from core.draws import Laplace
from core.mechanisms.tails import largest_sum, variance
from core.noise import Noise

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

    def largest_error(self, cells: int, failure: float) -> float:
        """Bound the error of all centered ranks: sums of the first counts minus p times the sum of all.

        Let F be the noise of the first counts and B that of the others. The error is (1 - p) F - p B, so it
        is at most the larger of |F| and |B|. If the sum of all is public, the fit turns p into the part of
        the cells that come first, and the same holds.

        1. Where a group ends, F is a sum of independent symmetric variables, one for each group so far. By
           Levy's inequality the largest of these sums exceeds a bound with at most twice the probability
           with which the sum over all groups does. The same holds for B.
        2. Inside of a group F lies between its values at the group's two ends, plus the bridge of the cells'
           noise. At most the bridges of all cells count, and the squares of a bridge's weights sum to at
           most a quarter of the group's cells.

        Args:
            cells: number of cells.
            failure: probability with which the bound may fail; half of it is for either step.
        """
        if math.isinf(self.group):
            return largest_sum(np.array([cells * variance(self.cell)]), self.cell, failure / 4)
        groups, weight = math.ceil(cells / self.size), float(self.weight(self.size))
        sums = groups * weight**2 * variance(self.group) + cells * (1 - weight) ** 2 * variance(self.cell)
        sums += self.size * weight**2 * variance(self.cell)  # the last group may be smaller
        largest = max(self.cell, self.group)
        return largest_sum(np.array([sums]), largest, failure / 8) + largest_sum(
            np.array([self.size / 4 * variance(self.cell)]), self.cell, failure / (2 * cells)
        )


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
