"""Exact discrete Laplace and Gaussian noise, drawn for many values at once from uniform random bits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property, lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64]
Power = Literal[1, 2]

_BATCH = 1 << 16  # proposals at once, which fit into a processor's cache
_GUARD = 48  # bits beyond those of the uniform number that bounds are first computed to
_MORE_BITS = 64  # bits that are drawn at once where the bits so far do not decide
_FINEST = 7  # a scale has 2^7 to 2^8 steps of a table, or as many as it has integers if these are fewer
_OPEN = -(1 << 62)  # far beyond the steps of any table


class RandomBits(Protocol):
    """A source of independent uniform integers."""

    def __call__(self, bits: int, count: int) -> Words:
        """Return integers uniform in 0, ..., 2^bits - 1, shape (count,); bits is at most 64."""


@dataclass(frozen=True)
class Rational:
    """A nonnegative rational number, numerator / denominator, not reduced."""

    numerator: int
    denominator: int

    def times(self, factor: int) -> "Rational":
        """Multiply by an integer."""
        return Rational(self.numerator * factor, self.denominator)


def exp_bounds(rate: Rational, bits: int) -> tuple[int, int]:
    """Return integers low <= 2^bits exp(-rate) <= high that differ by at most 2.

    The exponent is rounded down for the lower bound and up for the upper one. `Decimal.exp` is correctly
    rounded; its result is moved outwards by one unit all the same.
    """
    if rate.numerator >= bits * rate.denominator:
        return 0, 1
    digits = bits // 3 + 10  # 10^(bits / 3) exceeds 2^bits, and a rate is below bits
    down, up = (Context(prec=digits, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    top, bottom, unit = Decimal(-rate.numerator), Decimal(rate.denominator), Decimal(1 << bits)
    low = down.multiply(down.next_minus(down.exp(down.divide(top, bottom))), unit)
    high = up.multiply(up.next_plus(up.exp(up.divide(top, bottom))), unit)
    return math.floor(low), math.ceil(high)


@dataclass(frozen=True)
class StepTable:
    """Draw a step j = 0, 1, ... with probability proportional to exp(-rate j^power), exactly.

    Where it is signed, it draws a step of 0, 1, -1, 2, -2, ... with probability proportional to
    exp(-rate |step|^power). Below, j is then the place of a step in this order.

    Let F(j) be the probability of a step of at most j, and U a uniform real number. The smallest j with
    U < F(j) has the right distribution. The bits of U are drawn as they are needed:

    1. The first `first` bits say in which of 2^first equal intervals U lies. Where no F(j) lies in it, all
       U of the interval give one step, which a table holds.
    2. Otherwise `more` bits are drawn. They are compared with the first `first` + `more` binary digits of
       all F(j). If they differ from those of each F(j), they decide.
    3. Otherwise bits of U are drawn, and digits of all F(j) computed, until they decide.

    Every F(j) is known by integers that bound it from both sides. Steps 1 and 2 use binary digits on which
    both bounds agree, and step 3 decides only where both bounds say the same. So no rounding changes a
    probability. Step 3 ends with probability 1.

    Args:
        rate: at least 2^-32.
        power: 1 or 2.
        first: see above.
        more: see above.
        signed: see above.
    """

    rate: Rational
    power: Power
    first: int = 15
    more: int = 32
    signed: bool = False

    def _weights(self, bits: int) -> Iterator[tuple[int, int, int]]:
        """Yield bounds of 2^bits exp(-rate j^power) for j = 0, 1, ..., and one of all weights from j on.

        The ratio of neighboring weights is constant or falls. So the weights from j on sum to at most
        weight / (1 - ratio). It ends where the lower bound is 0. Signs are not looked at.
        """
        low = high = one = 1 << bits
        ratio_low, ratio_high = exp_bounds(self.rate, bits)
        square_low, square_high = (one, one) if self.power == 1 else exp_bounds(self.rate.times(2), bits)
        while True:
            yield low, high, -(-(high << bits) // (one - ratio_high))
            if not low:
                return
            low, high = low * ratio_low >> bits, -(-high * ratio_high >> bits)
            ratio_low, ratio_high = ratio_low * square_low >> bits, -(-ratio_high * square_high >> bits)

    def _cumulative(self, bits: int, guard: int) -> Iterator[tuple[int, int]]:
        """Yield bounds floor(2^bits F(j)) of j = 0, 1, ... from below and from above; F(j) is below 1."""
        weights = list(self._weights(bits + guard))
        *listed, (_, _, rest) = weights
        if self.signed:  # those of the sizes 0, 1, 1, 2, 2, ...
            listed, rest = [weights[(place + 1) // 2] for place in range(2 * len(listed) - 1)], 2 * rest
        least = sum(low for low, _, _ in listed)
        most = sum(high for _, high, _ in listed) + rest
        sum_low = sum_high = 0
        for low, high, _ in listed:
            sum_low, sum_high = sum_low + low, sum_high + high
            yield (sum_low << bits) // most, min((sum_high << bits) // least, (1 << bits) - 1)

    @cached_property
    def digits(self) -> NDArray[np.uint64]:
        """floor(2^(first + more) F(j)) for j = 0, 1, ..., up to the first j where all these digits are 1."""
        bits, guard = self.first + self.more, _GUARD
        while True:
            digits = []
            for low, high in self._cumulative(bits, guard):
                if low != high:
                    break
                digits.append(low)
                if low == (1 << bits) - 1:
                    return np.array(digits, dtype=np.uint64)
            guard += _GUARD

    @cached_property
    def _table(self) -> Ints:
        """Step of each interval of the first bits, shape (2^first,); `_OPEN` where it is not decided."""
        within = np.bincount(
            (self.digits >> np.uint64(self.more)).astype(np.int64), minlength=1 << self.first
        )
        return np.where(within > 0, _OPEN, self._steps(np.cumsum(within)))

    def _steps(self, places: Ints) -> Ints:
        """Return the steps j, or those at places j of the order of signed ones."""
        return np.where(places & 1, places + 1, -places) // 2 if self.signed else places

    def draw(self, firsts: Words | Ints, random: RandomBits) -> Ints:
        """Return the step of each uniform number, of which the first bits are given, shape (n,)."""
        steps = self._table[firsts]
        open_ = np.flatnonzero(steps == _OPEN)
        if len(open_):
            drawn = firsts[open_].astype(np.uint64) << np.uint64(self.more) | random(self.more, len(open_))
            places = np.searchsorted(self.digits, drawn)
            for number in np.flatnonzero(self.digits[places] == drawn).tolist():
                places[number] = self._decided(int(drawn[number]), random)
            steps[open_] = self._steps(places)
        return steps

    def _decided(self, drawn: int, random: RandomBits) -> int:
        """Return the j of a uniform number that starts with the bits `drawn`."""
        bits = self.first + self.more
        while True:
            drawn, bits = drawn << _MORE_BITS | int(random(_MORE_BITS, 1)[0]), bits + _MORE_BITS
            for place, (low, high) in enumerate(self._cumulative(bits, _GUARD)):
                if drawn < low:
                    return place
                if drawn <= high:
                    break


@dataclass(frozen=True)
class DiscreteNoise:
    """Draw integers z with probability proportional to exp(-rate |z|^power), exactly.

    Let M = 2^low_bits. Where M is 1, z is a signed step of `StepTable`. Otherwise a proposal is a sign, a
    step j of `StepTable` with rate M^power rate, and a uniform r in 0, ..., M - 1. With |z| = M j + r it is
    kept with probability exp(-x), where x = rate ((M j + r)^power - (M j)^power). The negative zero is never
    kept.

    Exactness. A sign and a magnitude M j + r are proposed with probability proportional to
    exp(-rate (M j)^power), and kept with probability exp(-x). The product of both is proportional to
    exp(-rate |z|^power). Every z has exactly one sign and magnitude, because the negative zero is dropped.
    Proposals are independent, so the kept ones are independent and have this distribution.

    A proposal is kept if a uniform number U is below exp(-x). The first bits of U are drawn for all
    proposals. exp(-x) is at least 1 - x, and x is at most its value for r = M. If the first bits show that U
    is below 1 minus that value, the proposal is kept at once. Otherwise bits are drawn until integer bounds
    of exp(-x) decide.

    Integers are computed modulo 2^64. So a larger z wraps around, as its sum with an int64 would.

    Args:
        rate: above 0.
        power: 1 for Laplace noise, 2 for Gaussian.
        low_bits: at most 63.
        first: bits of each uniform number that are drawn for all proposals.
        more: see `StepTable`.
    """

    rate: Rational
    power: Power
    low_bits: int
    first: int = 15
    more: int = 32

    @cached_property
    def steps(self) -> StepTable:
        """The distribution of j."""
        rate = self.rate.times(1 << self.low_bits * self.power)
        return StepTable(rate, self.power, self.first, self.more, signed=not self.low_bits)

    @cached_property
    def _surely_kept(self) -> Ints:
        """How many of the first bits' values keep any proposal of step j; the last is for all later j."""
        rate, unit = self.steps.rate, 1 << self.first
        growth = ((j + 1) ** self.power - j**self.power for j in range(len(self.steps.digits)))
        kept = [max(0, unit - -(-unit * rate.numerator * more // rate.denominator)) for more in growth]
        return np.array([*kept, 0], dtype=np.int64)

    def draw(self, count: int, random: RandomBits) -> Ints:
        """Return independent noise, shape (count,)."""
        drawn = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            size = min(count - filled, _BATCH)
            if self.low_bits:
                proposals, kept = self.proposals(size, random)
                found = proposals[kept]
            else:
                found = self.steps.draw(random(self.first, size), random)
            drawn[filled : filled + len(found)] = found
            filled += len(found)
        return drawn

    def proposals(self, count: int, random: RandomBits) -> tuple[Ints, NDArray[np.bool_]]:
        """Return proposals, and whether each is kept, both of shape (count,); of more than one low word."""
        words = random(self.first + 1, count)
        negative = (words & 1).astype(np.bool_)
        steps = self.steps.draw(words >> 1, random)
        lows, coins = random(self.low_bits, count).astype(np.int64), random(self.first, count)
        kept = ~negative | (steps > 0) | (lows > 0)
        sizes = (steps << self.low_bits) + lows
        sure = self._surely_kept[np.minimum(steps, len(self._surely_kept) - 1)]
        for place in np.flatnonzero(coins >= sure).tolist():
            proposal = int(steps[place]), int(lows[place])
            kept[place] &= self._keeps(*proposal, int(coins[place]), random)
        return np.where(negative, -sizes, sizes), kept

    def _keeps(self, step: int, low: int, drawn: int, random: RandomBits) -> bool:
        """Say whether a uniform number that starts with the bits `drawn` is below exp(-x)."""
        start, bits = step << self.low_bits, self.first
        x = self.rate.times((start + low) ** self.power - start**self.power)
        while True:
            least, most = exp_bounds(x, bits + _GUARD)
            if (drawn + 1) << _GUARD <= least:
                return True
            if drawn << _GUARD >= most:
                return False
            drawn, bits = drawn << _MORE_BITS | int(random(_MORE_BITS, 1)[0]), bits + _MORE_BITS


@lru_cache(maxsize=64)
def discrete_noise(scale: float, power: Power, finest: int = _FINEST, first: int = 15) -> DiscreteNoise:
    """Return Laplace noise, Pr[z] proportional to exp(-|z| / scale), or Gaussian, exp(-z^2 / (2 scale^2)).

    The scale is taken as the rational number that the float is.

    Args:
        scale: above 0.
        power: 1 for Laplace noise, 2 for Gaussian.
        finest: the steps of the table are at most 2^(1 - finest) scales; more take longer to list, and fewer
            to draw from. It changes no probability.
        first: see `DiscreteNoise`; neither does this one.
    """
    top, bottom = float(scale).as_integer_ratio()
    rate = Rational(bottom, top) if power == 1 else Rational(bottom**2, 2 * top**2)
    return DiscreteNoise(rate, power, max(0, math.frexp(scale)[1] - 1 - finest), first)


def draw_noise(count: int, scale: float, power: Power, random: RandomBits) -> Ints:
    """Return `count` independent draws of `discrete_noise`, with a table as large as the count repays."""
    finest, first = min(_FINEST, count.bit_length() // 2), min(15, 7 + count.bit_length())
    return discrete_noise(scale, power, finest, first).draw(count, random)
