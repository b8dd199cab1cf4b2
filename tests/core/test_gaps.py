"""Runs of an order, and the exponential mechanism over them, against enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.aggregate import Counts
from core.gaps import Order, Runs, rank_scores
from core.mechanisms.exponential import Exponential
from core.secure_noise import SecureNoise
from tests.core.exact import fits
from tests.core.seeded import SeededNoise

SIZE = 7


def point_of(runs, scores, scale, noise):
    draw = Exponential(what="point", scale=scale, spread=1)
    return draw.point(runs.starts, runs.lengths, scores, noise)


databases = st.lists(st.integers(0, SIZE - 1), max_size=12)


@given(databases, st.integers(0, SIZE - 1), st.integers(1, SIZE), st.booleans())
def test_runs_are_the_points_of_the_window_with_their_ranks(points, low, width, big):
    high, shift = min(SIZE, low + width), (1 << 100 if big else 0)
    order = Order.of([p + shift for p in points])
    runs = Runs.between(order, low + shift, high + shift)
    seen = {}
    for start, length, below, upto in zip(runs.starts, runs.lengths, runs.below, runs.upto, strict=True):
        assert length > 0
        for point in range(int(start), int(start) + int(length)):
            seen[point - shift] = (below, upto)
    expected = {v: (sum(p < v for p in points), sum(p <= v for p in points)) for v in range(low, high)}
    assert seen == expected


@given(databases, st.integers(0, SIZE), st.integers(0, SIZE))
def test_an_order_counts_and_cuts(points, low, high):
    order = Order.of(points)
    again = Order.of_counts(Counts.of(np.array(points, dtype=np.int64)))
    assert np.array_equal(order.values, again.values)
    assert np.array_equal(order.ranks, again.ranks)
    assert order.total == len(points)
    assert order.below(low) == sum(p < low for p in points)
    if low <= high:
        assert order.within(low, high).total == sum(low <= p < high for p in points)


def scores_of(points, offset, up, down):
    """Score of every point of the universe."""
    runs = Runs.between(Order.of(points), 0, SIZE)
    scores = rank_scores(runs, len(points), offset, up, down)
    out = np.zeros(SIZE, dtype=np.int64)
    for start, length, score in zip(runs.starts, runs.lengths, scores, strict=True):
        out[start : start + length] = score
    return out


@pytest.mark.parametrize(("up", "down"), [(1, 1), (1, 3), (3, 1)])
@pytest.mark.parametrize("offset", [0, -2, 3])
def test_range_of_the_score_is_as_declared_and_no_smaller(up, down, offset):
    """All databases of up to 4 records on 7 points: the range is reached, so a doubled weight is seen."""
    ranges = []
    for n in range(5):
        for points in itertools.combinations_with_replacement(range(SIZE), n):
            before = scores_of(points, offset, up, down)
            for extra in range(SIZE):
                moves = scores_of((*points, extra), offset, up, down) - before
                ranges.append(int(moves.max() - moves.min()))
    assert max(ranges) <= 2 * max(up, down)
    assert max(ranges) >= up + down


def test_scores_are_zero_exactly_at_the_quantiles():
    """On 1 1 1 2 5, half of the records are below or at 1: it is the median, and no other point is."""
    assert np.flatnonzero(scores_of([1, 1, 1, 2, 5], 0, 1, 1) == 0).tolist() == [1]
    assert np.flatnonzero(scores_of([1, 1, 5, 5], 0, 1, 1) == 0).tolist() == [1, 2, 3, 4, 5]
    assert np.flatnonzero(scores_of([1, 2, 3, 4, 5], 0, 1, 4) == 0).tolist() == [4, 5]


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(2)])
def test_points_are_chosen_by_the_exponential_mechanism(noise):
    """6,000 draws, chi-square at 1e-6; half the scale is rejected with power above 1 - 1e-6."""
    points, scale = [2, 2, 2, 5, 5, 6], 1.5
    runs = Runs.between(Order.of(points), 0, SIZE)
    scores = rank_scores(runs, len(points), 0, 1, 1)

    def drawn(factor):
        chosen = [point_of(runs, scores, scale * factor, noise) for _ in range(6000)]
        return np.bincount(chosen, minlength=SIZE)

    expected = np.exp(scores_of(points, 0, 1, 1) / scale)
    assert fits(drawn(1), expected)
    assert not fits(drawn(0.5), expected)


def test_largest_loss_of_the_median_is_what_the_scale_says():
    """Exact output distributions on all neighbors of up to 5 records: the loss comes near, never above."""
    scale, losses = 2.0, []
    for n in range(6):
        for points in itertools.combinations_with_replacement(range(SIZE), n):
            p = np.exp(scores_of(points, 0, 1, 1) / scale)
            for extra in range(SIZE):
                q = np.exp(scores_of((*points, extra), 0, 1, 1) / scale)
                losses.append(np.abs(np.log(p / p.sum() * q.sum() / q)).max())
    assert 0.6 * 2 / scale < max(losses) <= 2 / scale
    assert math.isfinite(max(losses))


@pytest.mark.parametrize("records", [2**33 - 1, 2**33, 2**35 + 7, 2**36, 2**40])
@pytest.mark.parametrize(("up", "down"), [(2**27, 2**27), (2**28 - 1, 1), (1, 2**28 - 1)])
def test_scores_of_many_records_do_not_wrap(records, up, down):
    """A record more moves no score by more than the larger weight, however many there are."""

    def scores(count):
        below, upto = np.array([0, 0, count]), np.array([0, count, count])
        runs = Runs(np.arange(3), np.ones(3, np.int64), below, upto)
        return rank_scores(runs, count, count * (2**27 - up), up, down)

    before, after = scores(records), scores(records + 1)
    assert (before <= 0).all()
    assert np.abs(after - before).max() <= max(up, down) + abs(2**27 - up)


@pytest.mark.parametrize("high", [2**62, 2**62 + 1, 2**63])
def test_runs_of_the_widest_axes_are_exact(high):
    """Lengths add up to the universe, and the last point is where it is, up to what int64 keys allow."""
    order = Order.of_counts(Counts.of(np.array([0, 5, 2**61, 2**62 - 1])))
    runs = Runs.between(order, 0, high)
    assert sum(map(int, runs.lengths)) == high
    ends = sorted((int(s), int(s) + int(n)) for s, n in zip(runs.starts, runs.lengths, strict=True))
    assert ends[0][0] == 0
    assert ends[-1][1] == high
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    assert order.below(high) == 4
    assert order.below(2**62 - 1) == 3
    scores = np.zeros(len(runs.lengths), dtype=np.int64)
    drawn = [point_of(runs, scores, 1.0, SeededNoise(seed)) for seed in range(40)]
    assert all(0 <= point < high for point in drawn)
    assert {point > high // 2 for point in drawn} == {True, False}  # but for 2^-39
