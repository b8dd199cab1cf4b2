"""The two ends of an interval, chosen in one draw with the value that the interval holds.

1. A *pivot* of about the wanted rank r is released, at a small part of the budget.
2. The points are cut into *bins* at distances 1, 2, 4, ... from the pivot, on both sides. Two more bins, one
   below and one above all points, stand for an end that is not known.
3. One draw chooses a value, the bin of the lower end, and the bin of the upper end, together: the exponential
   mechanism over all such triples. The interval reaches from the first point of the lower bin to the last
   point of the upper one.

Let a bin have all ranks from the number of records below its first point to the number of records up to its
last point. The score of a triple is minus the largest of three distances: that of r from the ranks of the
value, that of r - `reach` from the ranks of the lower bin, and that of r + `reach` from those of the upper
bin.

Sensitivity. Each distance is that of a public rank from a range of ranks, like the score of a value alone
(`core.gaps.rank_scores`), and changes by at most as much. The largest of three numbers changes by no more
than one of them does. So a triple costs no more than a value alone: what is paid is the pivot.

Guarantee. Some triple has score 0: some value has rank r, some bin holds r - `reach`, and a bin that is not
below it holds r + `reach`, because the bins cover all ranks. If all records from the first point of the lower
bin on are above rank r, the lower bin is at least `reach` away. Likewise for the upper bin. So

    Pr[the value is more than `reach` from rank r, or the interval holds no point of rank r]
        <= points pairs e^(-reach / scale),

because there are at most so many triples. A triple whose distances are all large has no more weight than a
value alone at this distance. So what is promised hardly grows. But beside bins that are at some distance
anyway, all values up to this distance have the same weight. So the usual error of a value is about a third
larger than without an interval; see `widened`.

Bins that double keep the pairs few, and fit any density of the records: the interval's ends are at most about
twice as far from the pivot as they had to be.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.gaps import Order, Runs, distances

Ints = NDArray[np.int64]
Ends = tuple[Ints, Ints]

_UNBOUNDED = 1 << 62  # farther than any rank
_PIVOTS, _BEGINS = 32, 8  # places of the pivot, and of the bins, over which `widened` averages
_FINEST, _FAR = 8, 40.0  # the finest bins there are 2^-8, and weights beyond the distance 40 are left out


def most_pairs(points: int) -> int:
    """Return the most pairs of a lower and an upper bin about any pivot in a window of so many points.

    There are as many bins on a side as a number of points has bits. The least number of b bits is 2^(b - 1).
    """
    others = points - 1
    bins = 1 + max(
        (b + (others - (1 << b - 1)).bit_length() for b in range(1, others.bit_length() + 1)), default=0
    )
    return (bins * bins + 5 * bins + 2) // 2


@lru_cache(maxsize=1 << 10)
def widened(reach: float, pivot: float) -> float:
    """Return the typical error of a value's rank over that of a value which is chosen without an interval.

    The records are dense: ranks are continuous, and any point may be the pivot. Let x be the distance of the
    value from its rank, D the larger distance of a pair of bins, all in scales of the choice. A triple has
    the weight e^(-max(|x|, D)), so a pair has the weight w = 2 (D + 1) e^(-D), and its part of the mean of
    x^2 is v = 2 (D^3 / 3 + D^2 + 2 D + 2) e^(-D). Given the pivot, the mean of x^2 is the sum of v over that
    of w. It is averaged over the pivot's distance from the rank, which is that of a two-sided exponential,
    and over where the bins begin, as the number of records of a point is not known. Without an interval it
    is 2.

    Args:
        reach: how far from the rank both ends are sought, in scales of the choice.
        pivot: the scale of the pivot's choice, in scales of the value's.
    """
    parts = (np.arange(_PIVOTS) + 0.5) / _PIVOTS
    squares = []
    for off in -pivot * np.log(parts):  # on one side: the other is its mirror image
        for begin in np.exp2((np.arange(_BEGINS) + 0.5) / _BEGINS - _FINEST):
            steps = begin * np.exp2(np.arange(math.ceil(math.log2((reach + off + _FAR) / begin)) + 1))
            edges = np.concatenate([[-np.inf], off - steps[::-1], off + steps, [np.inf]])
            lower, upper = (
                np.maximum(np.maximum(edges[:-1] - aim, aim - edges[1:]), 0) for aim in (-reach, reach)
            )
            near = [np.flatnonzero(each < _FAR) for each in (lower, upper)]
            far = np.maximum(lower[near[0], None], upper[near[1]])[near[0][:, None] <= near[1]]
            weights = np.exp(-far)
            squares.append(
                (weights * (far**3 / 3 + far**2 + 2 * far + 2)).sum() / (weights * (far + 1)).sum()
            )
    return math.sqrt(float(np.mean(squares)) / 2)


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the points of a window; see the docstring of the module.

    Args:
        edges: shape (k + 1,), first point of each bin, and the point after the last one. All are public.
    """

    edges: Ints

    @classmethod
    def about(cls, pivot: int, low: int, high: int) -> "Bins":
        """Cut the points of [low, high) at distances 1, 2, 4, ... from the pivot."""
        above = [pivot + (1 << i) for i in range((high - 1 - pivot).bit_length())]
        below = [pivot + 1 - (1 << i) for i in range((pivot - low).bit_length())]
        return cls(np.array([low, *reversed(below), *above, high], dtype=np.int64))

    def runs(self, order: Order) -> Runs:
        """Return the bins with their ranks in `order`."""
        ranks = order.ranks_at(self.edges)
        return Runs(self.edges[:-1], np.diff(self.edges), ranks[:-1], ranks[1:])

    def pairs(self, ends: Ends, reach: int, most: int | None) -> "Pairs":
        """Return all pairs of a lower and an upper bin, with the larger distance of each.

        Args:
            ends: lowest and highest rank of each bin, minus r, shape (k,) each.
            reach: see the docstring of the module, in units of the ranks.
            most: distances end there; None where they do not.
        """
        lows, highs = ends
        lower = distances((np.append(-_UNBOUNDED, lows), np.append(lows[0], highs)), -reach)
        upper = distances((np.append(lows, highs[-1]), np.append(highs, _UNBOUNDED)), reach)
        # A bin counts from 0; the one below all points is -1, and the one above them is k.
        at, to = np.divmod(np.arange(len(lower) * len(upper)), len(upper))
        some = at - 1 <= to
        at, to = at[some], to[some]
        larger = np.maximum(lower[at], upper[to])
        return Pairs(self, at - 1, to, larger if most is None else np.minimum(larger, most))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a lower and an upper bin.

    Args:
        bins: the bins.
        lower: shape (m,), number of the lower bin; -1 is the one below all points.
        upper: shape (m,), number of the upper bin; k is the one above all points.
        distances: shape (m,), the larger distance of both.
    """

    bins: Bins
    lower: Ints
    upper: Ints
    distances: Ints

    def interval(self, pair: int) -> tuple[int | None, int | None]:
        """Return the first point of the lower bin and the last point of the upper one; None if not known."""
        edges, lower, upper = self.bins.edges, int(self.lower[pair]), int(self.upper[pair])
        return (
            None if lower < 0 else int(edges[lower]),
            None if upper == len(edges) - 1 else int(edges[upper + 1]) - 1,
        )
