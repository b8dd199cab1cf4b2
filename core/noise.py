"""Integer noise from a secure source. The only file that draws randomness in a real run."""

import secrets
from typing import Protocol

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

Ints = NDArray[np.int64]

dp.enable_features("contrib")


class Noise(Protocol):
    """Where a release gets its randomness."""

    def laplace(self, values: Ints, scale: float) -> Ints:
        """Add discrete Laplace noise, Pr[z] proportional to exp(-|z| / scale), to each value (m,)."""

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """Add discrete Gaussian noise, Pr[z] proportional to exp(-z^2 / (2 scale^2)), to each value (m,)."""

    def select(self, scores: Ints, scale: float) -> int:
        """Index of the largest score (m,) after Gumbel noise of `scale`: exponential mechanism."""


class SecureNoise:
    """OpenDP's exact samplers, seeded by the operating system; never seeded by us."""

    def laplace(self, values: Ints, scale: float) -> Ints:
        """See `Noise.laplace`."""
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
        return self._apply(dp.m.make_laplace(*space, scale=scale), values)

    def gaussian(self, values: Ints, scale: float) -> Ints:
        """See `Noise.gaussian`."""
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
        return self._apply(dp.m.make_gaussian(*space, scale=scale), values)

    def select(self, scores: Ints, scale: float) -> int:
        """See `Noise.select`."""
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
        gumbel = dp.zero_concentrated_divergence()
        return int(dp.m.make_noisy_max(*space, output_measure=gumbel, scale=scale)(scores.tolist()))

    @staticmethod
    def _apply(measurement: dp.Measurement, values: Ints) -> Ints:
        return np.asarray(measurement(values.tolist()), dtype=np.int64).reshape(values.shape)


def secret_salt() -> bytes:
    """Return 16 secret random bytes: the key under which a run samples its records."""
    return secrets.token_bytes(16)
