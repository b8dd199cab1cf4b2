"""What bounds on contributions leave out of made-up units: an estimate of bias that reads no row.

Who knows the data guesses two public numbers: in how many groups a unit is on average, and how many rows it
has on average in each of them. The made-up units have these means, and one of two shapes, for N from 1 up:

- Alike: one more than a Poisson number, N = 1 + X of the mean m. Units differ by chance alone.
- Heavy: P(N > k) = m (m - 1) / ((m + k) (m + k - 1)). That is a geometric number whose chance to go on is
  drawn for each unit, from the Beta distribution of m - 1 and 2 (Irwin's Waring distribution). A few units
  have most: of 1,000, about one has more than 29 m. The variance is infinite.

A unit keeps min(N, L) of its N groups. Of all groups of all units, the share that is left out is
1 - E[min(N, L)] / m, where E[min(N, L)] is the sum of P(N > k) for k from 0 to L - 1. It is exactly

- alike: 1 - (1 + E[min(X, L - 1)]) / m, where E[min(X, c)] = (m - 1) P(X < c - 1) + c P(X >= c);
- heavy: (m - 1) / (m + L - 1), because P(N > k) = m (m - 1) (1 / (m + k - 1) - 1 / (m + k)) telescopes.

Rows within a group are bounded in the same way. The number of rows that a unit has in a group is taken to be
independent of the number of its groups, so the shares that are kept multiply.
"""

from dataclasses import dataclass

from core.errors import InvalidValue
from core.grouping import Contributions

_MOST = float(1 << 31)


@dataclass(frozen=True)
class Guess:
    """What is known of units without the data.

    Args:
        groups: mean number of groups of a unit.
        rows: mean number of rows that a unit has in each of its groups.

    Raises:
        InvalidValue: a mean is below 1, or no number.
    """

    groups: float = 1.0
    rows: float = 1.0

    def __post_init__(self) -> None:
        for name, mean in (("groups", self.groups), ("rows", self.rows)):
            if not 1 <= mean <= _MOST:
                raise InvalidValue(
                    name, mean, "a mean of units that have at least one must be from 1 to 2^31"
                )


@dataclass(frozen=True)
class LeftOut:
    """Which share the bounds leave out, of units that are alike and of units that are heavy.

    Args:
        units: of all pairs of a unit and a group that it is in: what numbers of units lack.
        rows: of all rows: what numbers of rows lack, and sums if values do not depend on it.
    """

    units: tuple[float, float]
    rows: tuple[float, float]


def left_out(guess: Guess, bounds: Contributions) -> LeftOut:
    """Return what `bounds` leave out of made-up units."""
    units, rows = _lost(guess.groups, bounds.groups), _lost(guess.rows, bounds.rows)
    alike, heavy = (1 - (1 - group) * (1 - row) for group, row in zip(units, rows, strict=True))
    return LeftOut(units, (alike, heavy))


def _lost(mean: float, most: int) -> tuple[float, float]:
    """Return 1 - E[min(N, most)] / mean for units that are alike, and for those that are heavy."""
    from scipy.special import pdtr as below  # not at the top: plans without a guess load faster

    others, c = mean - 1, most - 1
    few = others * below(c - 2, others) if c > 1 else 0.0
    kept = 1 + float(few + (c * (1 - below(c - 1, others)) if c else 0.0))
    return max(0.0, 1 - kept / mean), (mean - 1) / (mean + most - 1)
