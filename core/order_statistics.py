"""Order statistics of one bounded column and their smooth sensitivity, from the values near the rank."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.mechanisms.smooth_bound import FLOOR, reach
from core.neighbors import Neighbors

Ints = NDArray[np.int64]

_PAIRS = 1 << 22  # pairs of values held at a time
_MILLION = 10**6


@dataclass(frozen=True)
class Rank:
    """The rank r(n) = max(1, ceil(p n)) of a quantile: p = 0 is the minimum, 1/2 the lower median, 1 the
    maximum.

    Args:
        part: numerator of p.
        whole: denominator of p.
        inside: of an extreme, the rank so many further in is meant; 0 for any other quantile.
    """

    part: int
    whole: int
    inside: int = 0

    @classmethod
    def of_quantile(cls, quantile: float) -> "Rank":
        """Return the rank of a quantile in [0, 1], exactly as written, to a millionth."""
        p = Fraction(str(quantile)).limit_denominator(_MILLION)
        return cls(p.numerator, p.denominator)

    @property
    def extreme(self) -> bool:
        """Whether it is the minimum or the maximum."""
        return self.part in (0, self.whole)

    def of(self, records: int) -> int:
        """Rank among `records` records, counted from 1; a record more raises it by 0 or 1."""
        rank = max(1, -(-self.part * records // self.whole))
        return rank + self.inside if self.part == 0 else max(1, rank - self.inside)

    def moves(self, below: Ints, above: Ints) -> Ints:
        """Fewest records to add or remove so that a gap borders on the rank.

        With L records below a gap and H above it, the gap lies beside the record of rank r(L + H) if
        r(L + H) - 1 <= L <= r(L + H). For p > 0 that is -1 < p H - (1 - p) L <= 1, and one record more or
        less moves p H - (1 - p) L by p or by 1 - p, the larger of which is always at hand: by more records
        on the lighter side or fewer on the heavier. The minimum has L <= 1.

        Args:
            below: L, any shape.
            above: H, same shape.

        Raises:
            ValueError: a rank inside of an extreme, for which this does not hold.
        """
        if self.inside:
            raise ValueError(f"The rank is {self.inside} inside of an extreme: its moves are not known.")
        if self.part == 0:
            return np.maximum(below - 1, 0)
        balance = self.part * above - (self.whole - self.part) * below
        step = max(self.part, self.whole - self.part)
        too_high = -(-(balance - self.whole) // step)
        too_low = (-self.whole - balance) // step + 1
        return np.where(balance > self.whole, too_high, np.where(balance <= -self.whole, too_low, 0))


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


def smooth_sensitivity(values: Counts, upper: int, rank: Rank, beta: float, neighbors: Neighbors) -> float:
    """Compute the beta-smooth sensitivity of an order statistic of values in 0, ..., upper.

    With x_1 <= ... <= x_n, x_0 = 0 and x_(n+1) = upper, every database is a number of changes away from one
    in which a gap (x_i, x_j) borders on the rank:

        S = max over i < j of (x_j - x_i) e^(-beta cost(i, j)).

    replace_one, n public, r the rank: cost = j - i - 1 for i <= r <= j, records that move to 0 or
    upper (Nissim, Raskhodnikova and Smith 2007, Claim 3.3; exact). add_or_remove_one, where the rank r(n)
    moves with n: the local sensitivity is at most the larger gap beside x_r, since one record more or less
    moves the answer to the next value, or up to it. Emptying the gap takes j - i - 1 removals and bringing
    the rank to it `Rank.moves`(i, n + 1 - j). S is the exact maximum over all databases y of these gaps
    times e^(-beta d(x, y)), hence beta-smooth by the triangle inequality.

    Only values within `reach` ranks of r can matter. At least `FLOOR`.

    Args:
        values: how often each value occurs.
        upper: largest value, the width of the domain.
        rank: which order statistic.
        beta: smoothness.
        neighbors: the relation.
    """
    last = np.cumsum(values.counts)
    records = int(last[-1]) if len(last) else 0
    r, near = rank.of(records), reach(upper, beta) + 2
    low, i = np.append(0, values.keys), np.append(0, last)
    high, j = np.append(values.keys, upper), np.append(last - values.counts, records) + 1
    if neighbors.name == "replace_one":
        lows, highs = np.append(0, j[:-1]) <= r, np.append(last, records + 1) >= r
        low, i, high, j = low[lows], np.minimum(i[lows], r), high[highs], np.maximum(j[highs], r)
    lows, highs = np.abs(i - r) <= near, np.abs(j - r) <= near
    low, i, high, j = low[lows], i[lows], high[highs], j[highs]
    best, chunk = FLOOR, max(1, _PAIRS // max(1, len(high)))
    for start in range(0, len(low), chunk):
        some = slice(start, start + chunk)
        cost = j[None, :] - i[some, None] - 1
        if neighbors.name == "add_or_remove_one":
            cost = cost + rank.moves(*np.broadcast_arrays(i[some, None], records + 1 - j[None, :]))
        gaps = np.maximum(high[None, :] - low[some, None], 0)
        best = max(best, float((gaps * np.exp(-beta * np.maximum(cost, 0))).max(initial=0.0)))
    return best
