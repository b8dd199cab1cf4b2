"""Integer noise from a secure source. The only file that draws randomness in a real run."""

import secrets
from decimal import Context, Decimal

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import Measurement, enable_features
from opendp.typing import f64, i64

from core.noise import Ints, Lengths, Noise, log_weights

enable_features("contrib")

_LARGEST_SCALE = 2.0**56
"""Noise exceeds 128 times its scale with probability e^-128 at most."""


class SecureNoise(Noise):
    """Exact samplers (OpenDP's, and rejection for runs), seeded by the operating system; never by us."""

    def laplace(self, values: Ints, scale: float) -> Ints:
        """See `Noise.laplace`."""
        space = vector_domain(atom_domain(T=i64)), l1_distance(T=i64)
        return self._apply(make_laplace(*space, scale=_within(scale)), values)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """See `Noise.gaussian`."""
        space = vector_domain(atom_domain(T=i64)), l2_distance(T=f64)
        return self._apply(make_gaussian(*space, scale=_within(scale)), values)

    def select(self, scores: Ints, scale: float) -> int:
        """See `Noise.select`."""
        space = vector_domain(atom_domain(T=i64)), linf_distance(T=i64)
        gumbel = zero_concentrated_divergence()
        return int(make_noisy_max(*space, output_measure=gumbel, scale=scale)(scores.tolist()))

    def select_run(self, scores: Ints, lengths: Lengths, scale: float) -> int:
        """See `Noise.select_run`; exact, by rejection.

        Integers that surely exceed the true weights propose a run, by a uniform integer below their
        sum. The run is kept with probability true weight / proposal, a real number that is compared
        with a uniform one in as many digits as it takes to tell. Floating point only makes the
        proposals, whose margin is 2^-20 of the weight and one unit: far more than it errs.
        """
        scores, weights = np.asarray(scores), log_weights(scores, lengths, scale)
        anchor = int(np.argmax(weights))
        unit = 1 << (61 - len(weights).bit_length())
        over = np.exp(weights - weights[anchor]) * (unit * (1 + 2.0**-20))
        bounds = np.cumsum(over.astype(np.int64) + 1)
        while True:
            run = int(np.searchsorted(bounds, secrets.randbelow(int(bounds[-1])), side="right"))
            proposal = int(bounds[run]) - (int(bounds[run - 1]) if run else 0)
            ratio = unit * int(lengths[run]), proposal * int(lengths[anchor])
            if _happens(*ratio, int(scores[run]) - int(scores[anchor]), scale):
                return run

    def below(self, bound: int) -> int:
        """See `Noise.below`."""
        return secrets.randbelow(bound)

    @staticmethod
    def _apply(measurement: Measurement, values: Ints) -> Ints:
        # Drawn for zeros and added modulo 2^64: a sum that wrapped is hidden as well as one that did not,
        # while OpenDP's own addition saturates, and would tell one from the other.
        return values + np.asarray(measurement([0] * values.size), dtype=np.int64).reshape(values.shape)


def _within(scale: float) -> float:
    """Return a scale whose noise surely fits into int64: OpenDP's saturates there, and would show the value.

    Raises:
        ValueError: the budget is too small for the domain; nothing of the data is in that.
    """
    if scale >= _LARGEST_SCALE:
        raise ValueError(
            f"A noise scale of {scale:.3g} does not fit into int64: use a larger epsilon or step."
        )
    return scale


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
