"""Blocks of values with a tree in each: which nodes are counted, and estimates from their noisy counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

_MOST_INFERRED = 1 << 26  # values that are inferred to learn the errors of ranges: some five seconds


@dataclass(frozen=True)
class Forest:
    """Blocks of equal width over `size` values, and a tree with even fan-out in each.

    - An S node counts the records with a value before a block. Every block but the first has one.
    - The H nodes of a block are the nodes of its tree below the root. They have `height` levels; the nodes of
      the lowest level are single values. An H node counts the records with a value under it.
    - A prefix, the count of the records with a value before some end, is a sum: the S node of the end's block
      and, on every level, the H nodes to the left of the end under the same parent.

    Args:
        size: number of values, at least 2.
        block: values per block; the last one may have fewer.
        fanout: most children of a node.
        rooted: whether the number of records is public. If not, there is one block, whose total is unknown.
    """

    size: int
    block: int
    fanout: int
    rooted: bool

    @property
    def blocks(self) -> int:
        """Number of blocks k."""
        return -(-self.size // self.block)

    @cached_property
    def height(self) -> int:
        """Levels h of H nodes: log of the block's width to the base `fanout`, rounded up."""
        height, reach = 0, 1
        while reach < self.block:
            height, reach = height + 1, reach * self.fanout
        return height

    @cached_property
    def branching(self) -> int:
        """Children per node, on all levels: the smallest number for which `height` levels suffice."""
        return next(b for b in range(1, self.fanout + 1) if b**self.height >= self.block)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Values under a node of each level, from the top."""
        return tuple(self.branching**level for level in reversed(range(self.height)))

    @property
    def _padded(self) -> int:
        return int(self.branching**self.height)

    @property
    def _lengths(self) -> Ints:
        """Values in each block, shape (k,)."""
        return np.minimum(self.block, self.size - self.block * np.arange(self.blocks))

    def present(self) -> list[Bools]:
        """Which nodes of each level hold any value, shapes (k, branching^level)."""
        return [np.arange(self._padded // width) * width < self._lengths[:, None] for width in self.widths]

    def levels(self, counts: Ints) -> list[Ints]:
        """Sum counts (size,) up to the nodes of each level, shapes (k, branching^level)."""
        leaves = np.zeros((self.blocks, self._padded), dtype=np.int64)
        whole = np.zeros(self.blocks * self.block, dtype=np.int64)
        whole[: self.size] = counts
        leaves[:, : self.block] = whole.reshape(self.blocks, self.block)
        return [leaves.reshape(self.blocks, -1, width).sum(axis=2) for width in self.widths]

    def ends(self) -> Ints:
        """Values before each block but the first, shape (k - 1,)."""
        return self.block * np.arange(1, self.blocks)

    def _places(self, ends: Ints) -> tuple[Ints, Bools, list[Ints], list[Ints]]:
        """Return of each prefix its block, whether it has an S node, and its H nodes of each level.

        The H nodes of a level are given by their number and their parent.
        """
        block = np.minimum(ends // self.block, self.blocks - 1)
        offset = ends - block * self.block
        noisy = ends < self.size if self.rooted else np.ones(len(ends), dtype=np.bool_)
        taken, parents = [], []
        above = self._padded + 1  # the prefix of all values lies under the root too
        for width in self.widths:
            parents.append(block * (self._padded // above + 1) + offset // above)
            taken.append(np.where(noisy, offset % above // width, 0))
            above = width
        return block, noisy & (block > 0), taken, parents

    def noise_between(self, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
        """Count the noisy nodes in which two prefixes differ: S nodes and H nodes, shapes as given."""
        block_a, s_a, taken_a, parents_a = self._places(starts)
        block_b, s_b, taken_b, parents_b = self._places(stops)
        s = np.where((block_a == block_b) & (s_a == s_b), 0, s_a.astype(np.int64) + s_b)
        h = np.zeros_like(s)
        for a, b, above_a, above_b in zip(taken_a, taken_b, parents_a, parents_b, strict=True):
            h += np.where(above_a == above_b, np.abs(a - b), a + b)
        return s, h

    def average_noise(self) -> tuple[float, float]:
        """Average number of S and of H nodes in the difference of two prefixes, over all ranges of values.

        Equation 13 estimates these numbers by (c_1 / 2, c_2 / (8 h^2)). Here they are exact for the tree as
        it is. Nodes that both prefixes contain are not counted, because their noise cancels.
        """
        ends = np.arange(self.size + 1)
        block, s, taken, parents = self._places(ends)
        shared = np.bincount(block[s], minlength=1)
        s_nodes = float(s.sum()) * self.size - float((shared * (shared - 1.0)).sum())
        h_nodes = 0.0
        for here, above in zip(taken, parents, strict=True):
            children = int(here.max()) + 1
            prefixes = np.bincount(above * children + here).astype(np.float64)
            prefixes = np.pad(prefixes, (0, -len(prefixes) % children)).reshape(-1, children)
            later = prefixes[:, ::-1].cumsum(axis=1)[:, ::-1] - prefixes
            least = (np.arange(children) * (prefixes * (prefixes - 1) / 2 + prefixes * later)).sum()
            h_nodes += float(here.sum()) * self.size - 2 * float(least)
        ranges = self.size * (self.size + 1) / 2
        return s_nodes / ranges, h_nodes / ranges

    def prefix_variances(self, s_variance: float, h_variance: float) -> Floats:
        """Bound the variance of `infer`'s estimate of every prefix that is not exact.

        Let a node have the estimated total t. The part of it before a prefix's end is estimated by share * t
        plus a term that is independent of t and has variance `left`. Share and `left` of a node follow from
        those of its children, from the leaves up.

        The count before a block is estimated at least as well as from three sources: its own S node, and the
        S nodes of the two neighboring blocks, each combined with the tree between.

        Args:
            s_variance: of an S node.
            h_variance: of an H node.
        """
        ends = np.arange(1, self.size)
        block, offset = np.divmod(ends, self.block)
        share, left = np.zeros(len(ends)), np.zeros(len(ends))
        part, whole = share, np.ones(len(ends))
        for width, spread in zip(reversed(self.widths), reversed(self._spreads()), strict=True):
            siblings = spread.reshape(-1, self.branching)
            before = (siblings.cumsum(axis=1) - siblings).ravel()
            child = block * spread.shape[1] + offset // width
            own, whole = spread.ravel()[child], siblings.sum(axis=1)[child // self.branching]
            part = before[child] + share * own
            left += before[child] + share**2 * own - part**2 / whole
            share = part / whole
        if not self.rooted:  # the root's total is not known: its estimate has the variance `whole`
            return h_variance * np.append(left + part**2 / whole, self._spreads()[0].sum())
        deviations = np.sqrt(self._end_variances(s_variance, h_variance))
        s_part = (1 - share) * deviations[block] + share * deviations[block + 1]
        return np.asarray(s_part**2 + left * h_variance)

    def _end_variances(self, s_variance: float, h_variance: float) -> Floats:
        """Bound the variance of the estimated count before each block, and of the total, shape (k + 1,)."""
        variances = np.zeros(self.blocks + 1)
        variances[1:-1] = s_variance
        if s_variance and self.height:
            trees = self._spreads()[0].sum(axis=1) * h_variance
            beside = 1 / (variances[:-2] + trees[:-1]) + 1 / (variances[2:] + trees[1:])
            variances[1:-1] = 1 / (1 / s_variance + beside)
        return variances

    def range_variances(self, starts: Ints, stops: Ints, s_variance: float, h_variance: float) -> Floats:
        """Return the variance of `infer`'s estimate of the count of each range of values.

        `infer` maps noisy nodes y to C A' W y, where A has the nodes as rows, W their inverse variances, and
        C is the covariance of its estimates of the values' counts. For a range with indicator q let y be
        q times the variance at the nodes of single values, and 0 elsewhere. Then A' W y = q, and `infer`
        gives C q. The variance q' C q is the sum of C q over the range.

        Each range takes one inference. If all of them together would take more than `_MOST_INFERRED` values,
        the variances of the sums of nodes are returned, which are larger.

        Args:
            starts: values below each range, shape (r,).
            stops: values up to its end, shape (r,).
            s_variance: of an S node.
            h_variance: of an H node.
        """
        if not self.height or len(starts) * self.size > _MOST_INFERRED:
            s, h = self.noise_between(starts, stops)
            return np.asarray(s * s_variance + h * h_variance, dtype=np.float64)
        zeros = [np.zeros(here.shape) for here in self.present()[:-1]]
        variances = []
        for start, stop in zip(starts, stops, strict=True):
            leaves = np.zeros((self.blocks, self._padded))
            inside = np.zeros(self.blocks * self.block)
            inside[start:stop] = 1
            leaves[:, : self.block] = inside.reshape(self.blocks, self.block)
            none, total = np.zeros(self.blocks - 1, dtype=np.int64), 0 if self.rooted else None
            sums = np.append(0, self.infer([*zeros, leaves], none, s_variance / h_variance, total))
            variances.append(h_variance * max(0.0, sums[stop] - sums[start]))
        return np.array(variances)

    def infer(self, nodes: Sequence[Ints | Floats], ends: Ints, weight: float, total: int | None) -> Floats:
        """Best linear unbiased estimate of all prefixes from all noisy nodes, shape (size,).

        1. Up each tree: average a node's own count and the sum of its children, weighted by inverse
           variances.
        2. Along the blocks: fit the S nodes and the sums of the trees by least squares, which is a
           tridiagonal system.
        3. Down each tree: the previous steps change a node's estimate. Spread this change over its children
           in proportion to their variances.

        This is the inference of Hay, Rastogi, Miklau and Suciu (2010) for any variances. So the estimate of a
        range has at most the variance of any unbiased sum of noisy nodes.

        Args:
            nodes: noisy counts of each level, see `levels`.
            ends: noisy S nodes, shape (k - 1,).
            weight: variance of an S node over that of an H node.
            total: number of records where it is public.
        """
        spreads = self._spreads()
        estimates = self._up(nodes, spreads)
        if total is None:
            roots = estimates[0].sum(axis=1)
        else:
            roots = np.diff(self._along(estimates, spreads, ends, weight, total), prepend=0)
        for estimate, spread in zip(estimates, spreads, strict=True):
            children = estimate.reshape(roots.size, -1)
            shares = spread.reshape(roots.size, -1)
            gained = (roots.ravel() - children.sum(axis=1)) / shares.sum(axis=1).clip(1e-300)
            roots = children + gained[:, None] * shares
        return np.cumsum(roots.reshape(self.blocks, -1)[:, : self.block].ravel()[: self.size])

    def between(self, estimates: Floats, ends: Ints, total: int) -> Floats:
        """Move the estimates of all prefixes to where exact counts before and up to each block allow them.

        The true counts lie there too. So no estimate gets farther from the truth, or past it.

        Args:
            estimates: of `infer`, shape (size,).
            ends: exact S nodes, shape (k - 1,).
            total: number of records.
        """
        known, block = np.concatenate([[0], ends, [total]]), np.arange(self.size) // self.block
        moved = np.asarray(np.clip(estimates, known[block], known[block + 1]), dtype=np.float64)
        moved[self.ends() - 1] = ends  # float64 may have rounded large sums
        return moved

    def _spreads(self) -> list[Floats]:
        """Variance of each node's estimate from its own count and those below it.

        The unit is the variance of an H node's own count. Places that hold no value have variance 0.
        """
        spreads: list[Floats] = []
        for here in reversed(self.present()):
            own = here.astype(np.float64)
            if spreads:
                below = spreads[-1].reshape(*here.shape, -1).sum(axis=2)
                own = below / (1 + below)
            spreads.append(own)
        return spreads[::-1]

    def _up(self, nodes: Sequence[Ints | Floats], spreads: list[Floats]) -> list[Floats]:
        """Estimate of each node from its own count and those below it."""
        estimates: list[Floats] = []
        for noisy, spread in zip(reversed(nodes), reversed(spreads), strict=True):
            estimate = noisy.astype(np.float64)
            if estimates:
                below = estimates[-1].reshape(*noisy.shape, -1).sum(axis=2)
                estimate = below + spread * (estimate - below)
            estimates.append(estimate)
        return estimates[::-1]

    def _along(
        self, estimates: list[Floats], spreads: list[Floats], ends: Ints, weight: float, total: int
    ) -> Floats:
        """Estimate of the prefixes up to each block's end, shape (k,)."""
        if self.blocks > 1 and weight > 0 and estimates:
            sums, inverse = estimates[0].sum(axis=1), 1 / spreads[0].sum(axis=1)
            known = ends / weight + sums[:-1] * inverse[:-1] - sums[1:] * inverse[1:]
            known[-1] += total * inverse[-1]
            diagonal = np.append(1 / weight + inverse[:-1] + inverse[1:], 1.0)  # the last is the total itself
            below = np.concatenate([-inverse[1:-1], [0.0, 0.0]])
            system = np.stack([diagonal, below])
            return np.asarray(
                scipy.linalg.solveh_banded(system, np.append(known, total), lower=True, check_finite=False)
            )
        return np.append(ends, total).astype(np.float64)
