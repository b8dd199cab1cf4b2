"""NoisyAVG as published: what one record changes, and that nothing overflows."""

import numpy as np
import pytest

from core.budget import Budget
from core.neighbors import Neighbors
from core.one_cluster.paper.noisy_average import AverageScales, noisy_average
from core.one_cluster.paper.weighted import Weighted
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

BUDGET = Budget(1.0, 1e-6)
REPLACE = Neighbors("replace_one")
SALT = bytes(range(16))


def test_the_average_moves_by_what_its_noise_covers():
    """The sum moves by at most 2 R in L2 and the count by at most 1 when a record is replaced."""
    rng, scales = np.random.default_rng(3), AverageScales(0.5, 1e-7)
    for _ in range(100):
        radius, center = int(rng.integers(1, 20)), rng.integers(0, 30, size=3)
        points = rng.integers(0, 30, size=(12, 3))
        replaced = points.copy()
        replaced[0] = rng.integers(0, 30, size=3)
        seen = []
        for database in (points, replaced):
            noise = RecordingNoise(SeededNoise(0))
            noisy_average(Weighted.of(database), center, radius, 12, scales, 0.1, noise)
            seen.append(noise.calls)
        (_, sum_a, scale), (_, count_a, count_scale) = seen[0]
        (_, sum_b, _), (_, count_b, _) = seen[1]
        assert np.linalg.norm(sum_a - sum_b) <= 2 * radius
        assert abs(int(count_a[0] - count_b[0])) <= 1
        assert (2 * radius / scale) ** 2 / 2 == pytest.approx(scales.sum.cost.rho)
        assert 1 / count_scale == pytest.approx(scales.epsilon / 2)


@pytest.mark.parametrize(("radius", "records"), [(2, 2**60), (5, 2**59), (40, 2**56)])
def test_rounding_to_coarse_units_is_covered(radius, records):
    """Of opposite points the sum moves by as much as it can, in units of three steps."""
    scales, center, worst = AverageScales(0.5, 1e-7), np.full(3, 7), 0.0
    for ends in ([radius, 0, 0], [0, radius - 1, 1]):
        seen = []
        for point in (np.array(ends), -np.array(ends)):
            noise = RecordingNoise(SeededNoise(0))
            data = Weighted.of(np.stack([center, center + point]))
            noisy_average(data, center, radius, records, scales, 0.1, noise)
            seen.append(noise.calls[0])
        (_, first, scale), (_, second, _) = seen
        worst = max(worst, np.linalg.norm(first - second) * scales.sum.scale / scale)
    assert 0.5 < worst <= 2


def test_the_average_never_overflows():
    """2^44 records 2^31 steps away: their sum exceeds int64, so it is kept in coarser units."""
    data = Weighted(np.array([[2**31 - 1]]), np.array([2**44]))
    center = np.array([0])
    got = noisy_average(data, center, 2**31, 2**44, AverageScales(0.1, 1e-7), 0.01, SeededNoise(0))
    assert abs(got.mean[0] - (2**31 - 1)) <= got.error
    assert got.error < 2**17


def test_a_small_count_has_no_average():
    data = Weighted(np.array([[3]]), np.array([5]))
    assert noisy_average(data, np.array([0]), 9, 5, AverageScales(0.1, 1e-7), 0.1, SeededNoise(0)) is None
