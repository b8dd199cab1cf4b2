"""Noisy counts of cells and of their groups, and the ranks read off them."""

import numpy as np
import pytest

from core.draws import Laplace
from core.mechanisms.tails import variance
from core.quantiles.cells import CellCounts, CellScales, merged, ranks_of
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


def test_merged_cells_separate_the_wanted_ranks():
    """Ten cells of 10 records for ranks 25, 55 and 85: the edges at 40 and 70 stay."""
    edges, ranks = np.arange(0, 1100, 100), np.arange(0, 110, 10.0)
    assert merged(edges, ranks, np.array([25.0, 55.0, 85.0])).tolist() == [0, 400, 700, 1000]


def test_a_point_that_holds_a_wanted_rank_stays_alone():
    """Point 50 holds the records from rank 5 to 90; cells without records beside it are merged."""
    edges, ranks = np.array([0, 25, 50, 51, 60, 80, 100]), np.array([0.0, 5.0, 5.0, 90.0, 90.0, 90.0, 100.0])
    assert merged(edges, ranks, np.array([30.0, 60.0])).tolist() == [0, 50, 51, 100]


def test_cells_are_few_whatever_the_ranks():
    rng = np.random.default_rng(0)
    for _ in range(200):
        edges = np.unique(np.append(rng.integers(0, rng.choice([30, 1000]), 30), 1000))
        ranks = np.sort(rng.integers(0, 50, len(edges))).astype(float)
        wanted = np.sort(rng.random(rng.integers(2, 9))) * ranks[-1]
        cells = merged(edges, ranks, wanted)
        assert cells[0] == edges[0] and cells[-1] == edges[-1] and set(cells) <= set(edges)
        assert len(cells) <= 3 * len(wanted) + 1


SCALES = [CellScales(2.0), CellScales(2.0, 2.0, 4), CellScales(3.0, 5.0, 7), CellScales(3.0, 1.0, 3)]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("p", [None, 0.1, 0.5, 0.95])
def test_the_variance_of_each_centered_rank_follows_from_the_weights_of_all_draws(scales, p):
    """The fit is linear: noise of 1 on one count at a time gives the weights. A last group is small."""
    cells, known = 18, 0 if p is None else None
    kinds = scales.histograms(np.zeros(cells, dtype=np.int64))
    expected = np.zeros(cells + 1)
    for kind, scale in zip(range(len(kinds)), (scales.cell, scales.group), strict=False):
        for i in range(len(kinds[kind])):
            noisy = [np.zeros_like(each) for each in kinds]
            noisy[kind][i] = 1
            sums = np.append(0.0, np.cumsum(scales.fit(noisy, known)))
            weights = sums - (p or 0.0) * sums[-1]
            assert np.abs(weights).max() <= 1
            expected += weights**2 * variance(scale)
    assert scales._variances(cells, p) == pytest.approx(expected)


@pytest.mark.parametrize("scales", [CellScales(2.2), CellScales(2.0, 2.0, 9)])
@pytest.mark.parametrize("between", [None, (0.1, 0.9), (0.5, 0.55)])
def test_the_bound_of_all_centered_ranks_holds_and_is_not_far_off(scales, between):
    """600 draws at failure 0.1: more than 96 break with probability 1e-6."""
    cells, noise, errors = 80, SeededNoise(1), []
    known = 0 if between is None else None
    exact = scales.histograms(np.zeros(cells, dtype=np.int64))
    for _ in range(600):
        noisy = [noise.laplace(*each) for each in zip(exact, (scales.cell, scales.group), strict=False)]
        sums = np.append(0.0, np.cumsum(scales.fit(noisy, known)))
        errors.append(max(np.abs(sums - p * sums[-1]).max() for p in between or (0.0,)))
    bound = scales.largest_error(cells, 0.1, between)
    assert (np.array(errors) > bound).sum() <= 96
    assert bound <= 1.85 * np.quantile(errors, 0.9)
    chances = scales.errors_exceed(cells, np.array([0.0, bound, 2 * bound]), between)
    assert 1 == chances[0] > chances[1] > chances[2] and chances[1] == pytest.approx(0.1, rel=0.1)
