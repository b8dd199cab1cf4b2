"""Order statistics of one bounded column, their smooth sensitivity, and private choices by rank."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.mechanisms.exponential import Exponential
from core.mechanisms.smooth_bound import FLOOR, reach
from core.neighbors import Neighbors
from core.noise import Noise

Ints = NDArray[np.int64]
Costs = Callable[[Ints, Ints, Ints, Ints], Ints]
"""Fewest changes for any i in [i_first, i_last] and j in [j_first, j_last], arrays of one shape."""

_BLOCKS = 1 << 18  # blocks of pairs that are bounded at a time
_MILLION = 10**6


@dataclass(frozen=True)
class Rank:
    """The rank r(n) = max(1, ceil(p n)) of the p-quantile of n records.

    p = 0 is the minimum, p = 1/2 the lower median, and p = 1 the maximum.

    Args:
        part: numerator of p.
        whole: denominator of p.
    """

    part: int
    whole: int

    @classmethod
    def of_quantile(cls, quantile: float) -> "Rank":
        """Return the rank of a quantile in [0, 1]: p is the nearest fraction with denominator up to 10^6."""
        p = Fraction(str(quantile)).limit_denominator(_MILLION)
        return cls(p.numerator, p.denominator)

    def of(self, records: int) -> int:
        """Rank among `records` records, counted from 1. One more record raises the rank by 0 or 1."""
        return max(1, -(-self.part * records // self.whole))

    def changes_within(self, least_below: Ints, below: Ints, least_above: Ints, above: Ints) -> Ints:
        """Fewest records to add or remove so that a gap lies next to the record of this rank.

        Let L records lie below the gap and H above it.

        1. The gap lies next to the record of rank r(L + H) if r(L + H) - 1 <= L <= r(L + H).
        2. For p > 0 this is -1 < p H - (1 - p) L <= 1. For p = 0, the minimum, it is L <= 1.
        3. Adding or removing one record changes p H - (1 - p) L by p or by 1 - p.
        4. A change by the larger of p and 1 - p is possible in either direction: add a record on one side of
           the gap, or remove one on the other.

        The result is the smallest of all L in [least_below, below] and H in [least_above, above]. For p > 0
        the number depends on D = p H - (1 - p) L alone. It is 0 for D in (-1, 1] and grows with the distance
        of D from this interval. D is smallest for the fewest records above and the most below, and largest
        the other way round. If these two values of D are on the same side of the interval, the one closer to
        it gives the smallest number. Otherwise the smallest is 0.

        Args:
            least_below: smallest L, any shape.
            below: largest L, same shape.
            least_above: smallest H, same shape.
            above: largest H, same shape.
        """
        if self.part == 0:
            return np.maximum(least_below - 1, 0)
        least = self.part * least_above - (self.whole - self.part) * below
        most = self.part * above - (self.whole - self.part) * least_below
        step = max(self.part, self.whole - self.part)
        too_high = -(-(least - self.whole) // step)
        too_low = (-self.whole - most) // step + 1
        return np.where(least > self.whole, too_high, np.where(most <= -self.whole, too_low, 0))


def order_statistic(values: Counts, upper: int, rank: Rank) -> int:
    """Return the value of the rank; `upper` where there are fewer records.

    Args:
        values: how often each value in 0, ..., upper occurs.
        upper: largest value.
        rank: which one.
    """
    last = np.cumsum(values.counts)
    records = int(last[-1]) if len(last) else 0
    position = int(np.searchsorted(last, rank.of(records)))
    return int(values.keys[position]) if position < len(last) else upper


def ranks_that_matter(upper: int, beta: float) -> int:
    """Return how far from the wanted rank a value may lie that `smooth_sensitivity` depends on."""
    return reach(upper, beta) + 2


def smooth_sensitivity(values: Counts, upper: int, rank: Rank, beta: float, neighbors: Neighbors) -> float:
    """Compute the beta-smooth sensitivity of an order statistic of values in 0, ..., upper.

    Let x_1 <= ... <= x_n be the values, x_0 = 0 and x_(n+1) = upper. Let cost(i, j) be the fewest changes
    after which no record lies strictly between x_i and x_j, and the record of the wanted rank lies at an end
    of this gap. Then

        S = max over i < j of (x_j - x_i) e^(-beta cost(i, j)).

    replace_one. n is public; let r be the rank.

    1. cost(i, j) = j - i - 1 for i <= r <= j: the records between x_i and x_j move to 0 or upper.
    2. S is exact (Nissim, Raskhodnikova and Smith 2007, Claim 3.3).

    add_or_remove_one. The rank r(n) changes with n.

    1. Adding or removing one record moves the answer at most to the next smaller or larger value. So the
       local sensitivity is at most the larger of the two gaps next to the record of rank r(n).
    2. Emptying the gap between x_i and x_j takes j - i - 1 removals. Then i records lie below the gap and
       n + 1 - j above it, and it takes further changes, `Rank.changes_within`, until the record of the wanted
       rank lies next to it. cost(i, j) is the sum of both.
    3. S is the exact maximum, over all databases y, of the gaps of step 1 in y times e^(-beta d(x, y)). So S
       is beta-smooth by the triangle inequality.

    Only values within `ranks_that_matter` ranks of r can matter. S is at least `FLOOR`. The time depends on
    the number of distinct values near the rank, not on the width of the domain; see `_largest_gap`.

    Args:
        values: how often each value occurs.
        upper: largest value, the width of the domain.
        rank: which order statistic.
        beta: smoothness.
        neighbors: the relation.
    """
    last = np.cumsum(values.counts)
    records = int(last[-1]) if len(last) else 0
    r, near = rank.of(records), ranks_that_matter(upper, beta)
    low, i = np.append(0, values.keys), np.append(0, last)
    high, j = np.append(values.keys, upper), np.append(last - values.counts, records) + 1
    replaced = neighbors.name == "replace_one"
    if replaced:
        lows, highs = np.append(0, j[:-1]) <= r, np.append(last, records + 1) >= r
        low, i, high, j = low[lows], np.minimum(i[lows], r), high[highs], np.maximum(j[highs], r)
    lows, highs = np.abs(i - r) <= near, np.abs(j - r) <= near

    def costs(i_first: Ints, i_last: Ints, j_first: Ints, j_last: Ints) -> Ints:
        cost = np.asarray(j_first - i_last - 1)
        if not replaced:
            cost = cost + rank.changes_within(i_first, i_last, records + 1 - j_last, records + 1 - j_first)
        return np.asarray(np.maximum(cost, 0))

    return _largest_gap((low[lows], i[lows]), (high[highs], j[highs]), costs, beta)


def _largest_gap(lows: tuple[Ints, Ints], highs: tuple[Ints, Ints], costs: Costs, beta: float) -> float:
    """Find the largest (high - low) e^(-beta cost) of all pairs, at least `FLOOR`, by branch and bound.

    1. A block is a range of neighboring lows and a range of neighboring highs.
    2. No pair of a block is above the block's bound: (largest high - smallest low) e^(-beta smallest cost).
    3. A block whose bound is above the largest pair known so far is cut into four. All other blocks are
       dropped. The bound of a single pair is exact. So the result is the maximum over all pairs.
    4. If the records are evenly dense, about 1 / (beta w) blocks of w ranks are cut at each width w. The sum
       over all widths is a multiple of 1 / beta. In the worst case the bound of every pair is computed.

    Args:
        lows: lower ends of gaps and their ranks i, each ascending.
        highs: upper ends and their ranks j, each ascending.
        costs: see `Costs`.
        beta: smoothness.
    """
    (low, i), (high, j) = lows, highs
    best = FLOOR
    if not len(low) or not len(high):
        return best

    def largest(a: Ints, a_last: Ints, b: Ints, b_last: Ints) -> NDArray[np.float64]:
        gaps = np.maximum(high[b_last] - low[a], 0)
        return np.asarray(gaps * np.exp(-beta * costs(i[a], i[a_last], j[b], j[b_last])))

    first = np.zeros(1, dtype=np.int64)
    waiting = [(1 << (max(len(low), len(high)) - 1).bit_length(), first, first)]
    while waiting:
        width, a, b = waiting.pop()
        a_last, b_last = np.minimum(a + width, len(low)) - 1, np.minimum(b + width, len(high)) - 1
        bounds = largest(a, a_last, b, b_last)
        best = max(
            best, float(largest(a, a, b_last, b_last).max()), float(largest(a_last, a_last, b, b).max())
        )
        if width == 1:
            continue
        left, half = bounds > best, width // 2
        a, b = a[left], b[left]
        a, b = np.concatenate([a, a, a + half, a + half]), np.concatenate([b, b + half, b, b + half])
        there = (a < len(low)) & (b < len(high))
        a, b = a[there], b[there]
        for start in range(0, len(a), _BLOCKS):
            waiting.append((half, a[start : start + _BLOCKS], b[start : start + _BLOCKS]))
    return best


def choose_by_rank(values: Counts, upper: int, rank: Rank, draw: Exponential, noise: Noise) -> int:
    """Choose one of 0, ..., upper by the exponential mechanism.

    The score of v is -max(0, #{x < v} + 1 - r, r - #{x <= v}): minus the distance of r from the ranks that
    v has. Its sensitivity is 1 under both relations. A replaced record moves both ends of the ranks of v by
    at most 1. One more record raises each of these ends by 0 or 1, and also r by 0 or 1. The grid points
    between two neighboring values share one score and are one run (Smith 2011).

    Args:
        values: how often each value occurs.
        upper: largest value.
        rank: which order statistic.
        draw: of spread 2.
        noise: where randomness comes from.
    """
    last = np.cumsum(values.counts)
    r = rank.of(int(last[-1]) if len(last) else 0)
    before = np.append(0, last)  # records below each gap
    gap_starts = np.append(0, values.keys + 1)
    gap_away = np.maximum(before + 1 - r, r - before)
    value_away = np.maximum(np.maximum(last - values.counts + 1 - r, r - last), 0)
    starts = np.append(gap_starts, values.keys)
    lengths = np.append(np.append(values.keys, upper + 1) - gap_starts, np.ones_like(values.keys))
    scores = -np.append(gap_away, value_away)
    some = lengths > 0
    return draw.point(starts[some], lengths[some], scores[some], noise)
