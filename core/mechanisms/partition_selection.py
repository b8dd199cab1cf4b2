"""Release which private groups there are: those with enough units, by their noisy count or by a coin.

Let a unit be in at most L groups, and let p be the largest probability with which a group of one unit is
released. The release of a group depends on its own rows and its own noise alone.

Claim. A release of groups with their noisy totals is (epsilon, delta)-private with delta = 1 - (1 - p)^L, if
the totals of all groups together are epsilon-private (and in the same way for zCDP).

1. Take two neighbors. At most L groups hold units in the first but not in the second, and at most L in the
   second but not in the first. Each of these groups holds one unit. It may have any number of rows there, up
   to M, so p is the largest probability over all these rows.
2. Let E be the event that none of the groups that only the first one has is released, and E' the same for
   the second. Noise of groups is independent, so both have a probability of at least (1 - p)^L.
3. Given E and E', both releases are the same function of noisy totals of the groups that both have. The
   change of these totals is a part of the change of all totals. So the releases are
   epsilon-indistinguishable.
4. Distributions that are epsilon-indistinguishable up to events of probability delta are
   (epsilon, delta)-indistinguishable, and their compositions add up such deltas (Bun and Steinke 2016,
   Section 8, for zCDP).

Under `replace_one` a unit may leave L groups and appear in L others. Delta does not double, since E and E'
are events of different databases.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from core.budget import Cost
from core.draws import Draw
from core.errors import InvalidValue
from core.mechanisms.tails import excess, excess_of_sum, tail_of_sum
from core.noise import Noise

Ints = NDArray[np.int64]
Labels = NDArray[Any]

_BITS = 63  # binary digits of a probability
_LONGEST = 1 << 20  # most counts whose probability is below 1
_EXACT = 1000.0  # scale of Gaussian noise from which on its tail is bounded and not summed up
_FAR = 40  # scales of Gaussian noise beyond which its tail is 0 in float64
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class CountThreshold(Draw):
    """Noise on the number of units of every group; groups that reach `threshold` with it are released.

    Args:
        scale: of the noise.
        sensitivity: of the numbers of units of all groups: L1 for Laplace noise, L2 for Gaussian noise.
        threshold: smallest noisy number that is released.
        groups: number of groups that a unit is in, at most, L.
        gaussian: whether the noise is discrete Gaussian, or else discrete Laplace.
    """

    kind: ClassVar[str] = "noisy counts above a threshold"
    scale: float
    sensitivity: float
    threshold: int
    groups: int
    gaussian: bool

    @classmethod
    def of(
        cls,
        what: str,
        scale: float,
        sensitivity: float,
        delta: float,
        groups: int,
        gaussian: bool,
        **more: Any,
    ) -> "CountThreshold":
        """Return the draw with the smallest threshold that costs at most `delta`."""

        def made(threshold: int) -> "CountThreshold":
            return cls(
                what=what,
                scale=scale,
                sensitivity=sensitivity,
                threshold=threshold,
                groups=groups,
                gaussian=gaussian,
                **more,
            )

        low, high = 0, 2
        while made(high).alone > delta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if made(middle).alone <= delta else (middle, high)
        return made(high)

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`."""
        return self.scale

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.sensitivity

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise, at most."""
        return self.scale if self.gaussian else math.sqrt(2) * self.scale

    @property
    def least(self) -> int:
        """Smallest noisy number of units of a released group, rounded down."""
        return self.threshold

    @property
    def alone(self) -> float:
        """Probability that some group that holds one unit alone is released, at most."""
        each = min(1.0, self._one() * _ROUNDING)
        return 1.0 if each == 1 else -math.expm1(self.groups * math.log1p(-each))

    def _one(self) -> float:
        """Return the probability that a group of one unit is released, at most."""
        beyond = self.threshold - 1
        if self.gaussian:
            return _gaussian_tail(self.scale, beyond)
        return math.exp(-beyond / self.scale) / (1 + math.exp(-1 / self.scale))

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        spent = self.sensitivity / self.scale
        return Cost(rho=spent**2 / 2, delta=self.alone) if self.gaussian else Cost(spent, self.alone)

    def found_from(self, failure: float) -> int:
        """Return the number of units from which on a group is released but for probability `failure`."""
        if self.gaussian:
            return self.threshold + math.ceil(self.scale * math.sqrt(2 * math.log(1 / failure)))
        return self.threshold + excess(self.scale, failure)

    def released(self, labels: Labels, counts: Ints, noise: Noise) -> tuple[Labels, Ints]:
        """Release the labels of all groups that reach the threshold, and their noisy numbers of units.

        Args:
            labels: shape (m,), distinct, of groups that hold units.
            counts: shape (m,), their numbers of units.
            noise: where randomness comes from.
        """

        def sample() -> tuple[Labels, Ints]:
            here = counts > 0
            noisy = counts[here]
            if len(noisy):
                noisy = (noise.gaussian if self.gaussian else noise.laplace)(noisy, self.scale)
            enough = noisy >= self.threshold
            return labels[here][enough], noisy[enough]

        return noise.answer(self, sample)


@dataclass(frozen=True, kw_only=True)
class SumsThreshold(CountThreshold):
    """Noise on several sums of every group; groups are released whose sums together reach `threshold`.

    No sum is below 0, and without noise the sums of a group are together `extent` times its number of units,
    whatever rows these have. See `core.statistics.shares` for which sums these are. So in a group of one unit
    they are `extent`, and it is released with the probability that extent + Z + Z' >= threshold, where Z and
    Z' are the Laplace noise of two sums; of three sums there are three.

    The claim above holds for these sums as totals: what is released of a group depends on its noisy sums
    alone. In particular one unit cannot show by having many rows in a group, as it could if a noisy number of
    rows were compared with a threshold that is made for one row.

    Args:
        scale: of the noise of each sum.
        sensitivity: of the sums of all groups, L1.
        threshold: smallest total of the noisy sums of a group that is released.
        extent: what one unit adds to the sums of a group, together.
        sums: how many there are.
    """

    kind: ClassVar[str] = "noisy sums above a threshold"
    extent: int
    sums: int = 2

    @property
    def least(self) -> int:
        """Smallest noisy number of units of a released group, rounded down."""
        return self.threshold // self.extent

    def _one(self) -> float:
        """Return the probability that a group of one unit is released, at most."""
        beyond = self.threshold - self.extent
        return 1.0 if beyond < 1 else float(tail_of_sum(self.sums, self.scale, np.array(float(beyond))))

    def found_from(self, failure: float) -> int:
        """Return the number of units from which on a group is released but for probability `failure`."""
        return -(-(self.threshold + excess_of_sum(self.sums, self.scale, failure)) // self.extent)

    def released(self, labels: Labels, counts: Ints, noise: Noise) -> tuple[Labels, Ints]:
        """Release the labels of all groups that reach the threshold, and their noisy sums.

        Nothing is decided by exact sums: of very many records they wrap modulo 2^64, which noise hides.

        Args:
            labels: shape (m,), distinct, of groups that hold units.
            counts: shape (m, sums).
            noise: where randomness comes from.
        """

        def sample() -> tuple[Labels, Ints]:
            noisy = counts
            if len(counts):
                noisy = noise.laplace(counts.ravel(), self.scale).reshape(counts.shape)
            enough = noisy.sum(axis=1) >= self.threshold
            return labels[enough], noisy[enough]

        return noise.answer(self, sample)


def _gaussian_tail(scale: float, least: int) -> float:
    """Return a bound on Pr[Z >= least] of discrete Gaussian noise.

    For a small scale it is the sum of the probabilities. The tail from m on is at most that of the continuous
    Gaussian from m - 1 on (Canonne, Kamath and Steinke 2020, Proposition 25), which serves large scales.
    """
    if scale >= _EXACT:
        return math.erfc((least - 1) / scale / math.sqrt(2)) / 2
    reach = math.ceil(_FAR * scale) + 1
    weights = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    return float(weights[max(0, least + reach) :].sum() / weights.sum())


@dataclass(frozen=True, kw_only=True)
class OptimalSelection(Draw):
    """Release each group by a coin that depends on its number of units, with the best odds there are.

    A group of n units is released with probability q(n), where q(0) = 0 and, with e and d the epsilon and
    the delta of one group, q(n) = min(1, exp(e) q(n - 1) + d, 1 - exp(-e) (1 - q(n - 1) - d)). No
    (e, d)-private choice that releases no empty group releases any group with a larger probability
    (Desfontaines, Voss, Gipson and Mandayam 2022, Theorem 1).

    Privacy, by itself. q does not fall. So between n - 1 and n units four inequalities are needed:
    q(n) <= exp(e) q(n - 1) + d and 1 - q(n - 1) <= exp(e) (1 - q(n)) + d, which the definition gives; and
    q(n - 1) <= q(n) and 1 - q(n) <= 1 - q(n - 1), which are true. Probabilities are whole multiples of 2^-63,
    rounded down with bounds of exp(e) from the safe side. So the inequalities hold exactly for the odds that
    are drawn. A unit more or less changes the number of units of L groups by 1, and a replaced unit of 2 L
    groups; the choices of these groups compose by addition.

    Args:
        epsilon: of one group.
        delta: of one group.
        groups: number of groups whose choices compose: L, or 2 L if units are replaced.
    """

    kind: ClassVar[str] = "optimal partition selection"
    epsilon: float
    delta: float
    groups: int
    odds: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "odds", _odds(self.epsilon, self.delta))

    @property
    def noise_scale(self) -> float:
        """See `Draw.noise_scale`: that of truncated geometric noise, by which the same odds can be had."""
        return 1 / self.epsilon

    @property
    def change(self) -> float:
        """See `Draw.change`."""
        return self.groups

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        return Cost(self.groups * self.epsilon, self.groups * self.delta)

    def found_from(self, failure: float) -> int:
        """Return the number of units from which on a group is released but for probability `failure`."""
        wanted = (1 - failure) * 2.0**_BITS
        return next((n for n, odds in enumerate(self.odds) if odds >= wanted), len(self.odds))

    @cached_property
    def _table(self) -> NDArray[np.uint64]:
        return np.array(self.odds, dtype=np.uint64)

    def released(self, labels: Labels, counts: Ints, noise: Noise) -> Labels:
        """Release the labels of groups.

        Args:
            labels: shape (m,), distinct.
            counts: shape (m,), their numbers of units.
            noise: where randomness comes from.
        """

        def sample() -> Labels:
            many = len(counts)
            drawn = noise.below(1 << (8 * 8 * many)).to_bytes(8 * many, "little")
            uniform = np.frombuffer(drawn, dtype="<u8") >> np.uint64(64 - _BITS)
            last = len(self.odds) - 1
            odds = self._table[np.clip(counts, 0, last)]
            return labels[uniform < odds]

        return noise.answer(self, sample)


@lru_cache(64)
def _odds(epsilon: float, delta: float) -> tuple[int, ...]:
    """Return 2^63 q(n) for n = 0, 1, ... up to the first that is 2^63, each rounded down.

    Raises:
        InvalidValue: epsilon is so small that there are too many of them.
    """
    whole = 1 << _BITS
    grows = math.exp(epsilon) * (1 - 2**-50)  # below exp(e), although math.exp errs by up to a unit
    falls = math.exp(-epsilon) * (1 + 2**-50)
    up, up_under = grows.as_integer_ratio()
    down, down_under = falls.as_integer_ratio()
    added = math.floor(Fraction(delta) * whole)
    odds = [0]
    while odds[-1] < whole:
        last = odds[-1]
        rest = max(0, whole - last - added)
        grown = last * up // up_under + added
        kept = whole - -(-rest * down // down_under)
        following = max(last, min(whole, grown, kept))
        if following == last or len(odds) > _LONGEST:
            raise InvalidValue(
                "epsilon",
                epsilon,
                "private keys need a larger epsilon or delta, or fewer groups for each unit",
            )
        odds.append(following)
    return tuple(odds)
