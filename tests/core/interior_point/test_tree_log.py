"""TreeLog: how far universes shrink, and which records are used."""

from core.gaps import Order
from core.interior_point.tree_log import TreeLog, depth_of
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


def test_of_more_records_the_smallest_are_used():
    """An interior point of them is one of all, and the noise is made for no more."""
    method, noise = TreeLog.calibrated(16, 1.0, 1e-6, 0.1), RecordingNoise(SeededNoise(0))
    most = method.path.records
    assert method.find(Order.of([7] * most + [9000] * 10**5), noise) == 7
    assert max(int(values.sum()) for _, values, _ in noise.calls) <= 2 * most
    assert method.find(Order.of([7] * (3 * method.path.trim)), noise) is None


def test_universes_shrink_to_their_logarithm():
    assert [depth_of(bits) for bits in (3, 4, 16, 64, 256, 4096)] == [0, 1, 2, 2, 3, 3]
