"""Noisy counts of cells and of their groups, and the ranks read off them."""

import numpy as np
import pytest

from core.draws import Laplace
from core.quantiles.cells import CellCounts, ranks_of
from tests.core.seeded import SeededNoise


def test_ranks_ascend_and_err_no_more_than_the_sums():
    rng = np.random.default_rng(0)
    for _ in range(50):
        exact = rng.poisson(rng.choice([0, 5], 40))
        noisy = exact + rng.laplace(0, 4, 40)
        ranks, total = ranks_of(noisy)
        true, sums = (np.append(0, np.cumsum(counts)) for counts in (exact, noisy))
        assert np.all(np.diff(ranks) >= -1e-9) and total == pytest.approx(noisy.sum())
        assert np.abs(ranks - true).max() <= np.abs(sums - true).max() + 1e-9


def test_consistent_counts_are_unbiased_and_tighter():
    """Groups must help their own totals: variance below that of the cells alone, by 4,000 draws."""
    cell, group = (Laplace(what=what, scale=2.0, sensitivity=1) for what in ("cells", "groups"))
    cells, counts = CellCounts(cell, group, 5), np.full(20, 50)
    noise = SeededNoise(3)
    drawn = np.array([cells.release(counts, None, noise) for _ in range(4000)])
    variance = 2 * 2.0**2 - 1 / 6  # about that of the discrete Laplace
    assert abs(drawn.mean() - 50) < 0.1
    totals = drawn[:, :5].sum(axis=1)
    assert totals.var() == pytest.approx(variance * 5 / 6, rel=0.15)
    assert CellCounts(cell).release(counts, 999, noise).sum() == pytest.approx(999)
