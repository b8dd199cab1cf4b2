"""Integer noise from a secure source. The only file that draws randomness in a real run."""

import math
import secrets
from decimal import Context, Decimal

import numpy as np

from core.discrete_noise import Power, Words, draw_noise
from core.noise import Ints, Lengths, Noise, log_weights

_UNIFORM_FROM = 2.0**62
"""Scales from which on noise modulo 2^64 is replaced by a uniform number."""


class SecureNoise(Noise):
    """Exact samplers, whose randomness is the operating system's.

    Sums of values and noise are computed modulo 2^64. So a sum that wrapped is hidden as well as any other.
    """

    def laplace(self, values: Ints, scale: float) -> Ints:
        """See `Noise.laplace`."""
        return _noisy(values, scale, 1)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """See `Noise.gaussian`."""
        return _noisy(values, scale, 2)

    def select(self, scores: Ints, scale: float) -> int:
        """See `Noise.select`."""
        return self.select_run(scores, np.ones(len(scores), dtype=np.int64), scale)

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        """See `Noise.select_run`; exact, by rejection.

        Integers that surely exceed the true weights propose a run, by a uniform integer below their
        sum. The run is kept with probability true weight / proposal, a real number that is compared
        with a uniform one in as many digits as it takes to tell. Floating point only makes the
        proposals, whose margin is 2^-20 of the weight and one unit: far more than it errs.

        Raises:
            ValueError: the scale is not a finite number above 0. It is public.
            TypeError: see `core.noise.log_weights`.
        """
        if not 0 < scale < math.inf:
            raise ValueError(f"A scale of {scale:.3g} is not a finite number above 0.")
        scores, weights = np.asarray(scores), log_weights(scores, lengths, scale)
        anchor = int(np.argmax(weights))
        unit = 1 << (61 - len(weights).bit_length())
        weights -= weights[anchor]  # in place: there may be millions of runs
        np.exp(weights, out=weights)
        weights *= unit * (1 + 2.0**-20)
        bounds = weights.astype(np.int64)
        bounds += 1
        np.cumsum(bounds, out=bounds)
        while True:
            run = int(np.searchsorted(bounds, secrets.randbelow(int(bounds[-1])), side="right"))
            proposal = int(bounds[run]) - (int(bounds[run - 1]) if run else 0)
            ratio = unit * int(lengths[run]), proposal * int(lengths[anchor])
            if _happens(*ratio, int(scores[run]) - int(scores[anchor]), float(scale)):
                return run

    def below(self, bound: int) -> int:
        """See `Noise.below`."""
        return secrets.randbelow(bound)


def _noisy(values: Ints, scale: float, power: Power) -> Ints:
    """Add noise modulo 2^64, of any scale.

    No large scale is an error here: which draws are made, and in which unit, may depend on records and on
    what was drawn before, so an error would tell. Plans refuse scales of `core.draws.LARGEST_SCALE` or more,
    which leave nothing of the values to read. From `_UNIFORM_FROM` on the sum is a uniform number, which does
    not depend on the values at all.

    Raises:
        ValueError: the scale is not above 0. It is made from public parameters.
    """
    if not scale > 0:
        raise ValueError(f"A noise scale of {scale:.3g} is not above 0.")
    if scale >= _UNIFORM_FROM:
        return random_bits(64, values.size).astype(np.uint64).view(np.int64).reshape(values.shape)
    return values + draw_noise(values.size, scale, power, random_bits).reshape(values.shape)


def random_bits(bits: int, count: int) -> Words:
    """Return secret integers uniform in 0, ..., 2^bits - 1, shape (count,); bits is from 1 to 64."""
    size = 1 << (-(-bits // 8) - 1).bit_length()  # bytes of the smallest type that holds them
    words: Words = np.frombuffer(secrets.token_bytes(size * count), dtype=f"u{size}")
    return np.right_shift(words, words.dtype.type(8 * size - bits))


def _happens(numerator: int, denominator: int, score: int, scale: float) -> bool:
    """Draw a coin of probability numerator / denominator exp(score / scale), which is at most 1, exactly.

    The bits of a uniform number are drawn until they decide. With d digits the probability is known to a
    relative 10^-(d - 24): the exponent is below 10^20 in size and every operation is correctly rounded.
    """
    top, bottom = scale.as_integer_ratio()
    drawn, bits, digits = 0, 0, 48
    while True:
        drawn, bits = (drawn << 64) | secrets.randbits(64), bits + 64
        exact = Context(prec=digits, Emin=-(10**17), Emax=10**17)
        exponent = exact.divide(Decimal(score * bottom), Decimal(top))
        ratio = exact.divide(Decimal(numerator), Decimal(denominator))
        chance = exact.multiply(exact.multiply(ratio, exact.exp(exponent)), Decimal(1 << bits))
        slack = exact.add(exact.scaleb(chance, 24 - digits), Decimal(f"1e-{digits}"))
        if exact.add(chance, slack) <= drawn:
            return False
        if exact.subtract(chance, slack) >= drawn + 1:
            return True
        digits += 48


def secret_salt() -> bytes:
    """Return 16 secret random bytes: the key under which a run samples its records."""
    return secrets.token_bytes(16)
