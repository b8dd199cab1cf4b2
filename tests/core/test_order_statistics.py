"""Smooth sensitivity of order statistics against its definition on all small databases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.aggregate import Counts
from core.mechanisms.smooth_bound import FLOOR, reach, smooth_bound
from core.neighbors import Neighbors
from core.order_statistics import Rank, order_statistic, smooth_sensitivity

REPLACE, ADD = Neighbors("replace_one"), Neighbors("add_or_remove_one")
QUANTILES = [0.0, 0.25, 0.5, 0.7, 1.0]
BETAS = [0.1, 0.5, 1.5]


def counts(values):
    return Counts.of(np.array(values, dtype=np.int64))


def answer(values, upper, rank):
    return order_statistic(counts(values), upper, rank)


def sorted_answer(values, upper, rank):
    place = rank.of(len(values))
    return sorted(values)[place - 1] if place <= len(values) else upper


@given(st.lists(st.integers(0, 9), max_size=12), st.sampled_from(QUANTILES))
def test_the_order_statistic_is_the_one_of_the_sorted_values(values, quantile):
    rank = Rank.of_quantile(quantile)
    assert answer(values, 9, rank) == sorted_answer(values, 9, rank)


def test_ranks():
    assert [Rank.of_quantile(0.5).of(n) for n in (0, 1, 2, 3, 4)] == [1, 1, 1, 2, 2]
    assert [Rank.of_quantile(p).of(10) for p in (0.0, 0.1, 0.7, 0.71, 1.0)] == [1, 1, 7, 8, 10]


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("size", [1, 3, 4])
def test_replacing_equals_brute_force(quantile, size):
    upper, rank = 4, Rank.of_quantile(quantile)
    databases = list(itertools.product(range(upper + 1), repeat=size))
    local = np.array(
        [
            max(
                abs(sorted_answer(x, upper, rank) - sorted_answer((*x[:i], v, *x[i + 1 :]), upper, rank))
                for i in range(size)
                for v in range(upper + 1)
            )
            for x in databases
        ]
    )
    table = np.array(databases)
    for x in databases[::9]:
        distance = (table != np.array(x)).sum(axis=1)
        for beta in BETAS:
            expected = max(FLOOR, (np.exp(-beta * distance) * local).max())
            assert smooth_sensitivity(counts(x), upper, rank, beta, REPLACE) == pytest.approx(expected)


def histograms(upper, most):
    return [h for h in itertools.product(range(most + 1), repeat=upper + 1) if sum(h) <= most]


def unfolded(histogram):
    return [value for value, count in enumerate(histogram) for _ in range(count)]


def gap(histogram, upper, rank):
    """Return the larger gap beside the answer."""
    padded, place = [0, *unfolded(histogram), upper], rank.of(sum(histogram))
    return max(padded[i + 1] - padded[i] for i in (place - 1, place) if i + 1 < len(padded))


@pytest.mark.parametrize("quantile", QUANTILES)
def test_adding_and_removing_equals_brute_force(quantile):
    """S is the maximum of the gaps of all databases, which bound their local sensitivities."""
    upper, most, rank = 2, 11, Rank.of_quantile(quantile)
    all_ = histograms(upper, most)
    gaps = np.array([gap(h, upper, rank) for h in all_])
    for h, largest in zip(all_, gaps, strict=True):
        here = sorted_answer(unfolded(h), upper, rank)
        moved = [[c + step * (i == value) for i, c in enumerate(h)] for value in range(3) for step in (1, -1)]
        others = [sorted_answer(unfolded(other), upper, rank) for other in moved if min(other) >= 0]
        assert max(abs(here - other) for other in others) <= largest
    table = np.array(all_)
    for h in all_[::5]:
        if sum(h) > 5:
            continue
        distance = np.abs(table - np.array(h)).sum(axis=1)
        for beta in (0.5, 1.5):
            expected = max(FLOOR, (np.exp(-beta * distance) * gaps).max())
            assert smooth_sensitivity(counts(unfolded(h)), upper, rank, beta, ADD) == pytest.approx(expected)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    st.integers(0, 1000),
    st.sampled_from(QUANTILES),
    st.sampled_from(BETAS),
    st.booleans(),
)
def test_it_is_smooth_and_bounds_the_change(values, other, quantile, beta, adds):
    rank, relation = Rank.of_quantile(quantile), ADD if adds else REPLACE
    neighbor = [*values, other] if adds else [*values[1:], other]
    here, there = (smooth_sensitivity(counts(x), 1000, rank, beta, relation) for x in (values, neighbor))
    assert abs(math.log(here / there)) <= beta + 1e-9
    assert abs(answer(values, 1000, rank) - answer(neighbor, 1000, rank)) <= min(here, there) + 1e-9


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_only_values_near_the_rank_matter(relation):
    """What lies more than `reach` ranks away, moved anywhere, changes nothing."""
    beta, upper, rng = 0.5, 10**6, np.random.default_rng(0)
    near = reach(upper, beta) + 2
    values = np.sort(rng.integers(0, upper, 1001))
    moved = values.copy()
    moved[: 500 - near - 1], moved[500 + near + 1 :] = 0, upper
    rank = Rank.of_quantile(0.5)
    assert smooth_sensitivity(Counts.of(values), upper, rank, beta, relation) == smooth_sensitivity(
        Counts.of(moved), upper, rank, beta, relation
    )


def test_the_truncated_bound_is_the_full_one():
    local = [3.0, 5.0, 5.0, 40.0, 90.0, 100.0]

    def at(k, enough):
        return local[min(k, 5)]

    for beta in (0.01, 0.3, 2.0):
        full = max(math.exp(-beta * k) * at(k, 0) for k in range(2000))
        assert smooth_bound(at, 100.0, beta) == pytest.approx(full)
    assert smooth_bound(at, 0.0, 1.0) == FLOOR
    assert math.exp(-0.3 * reach(100.0, 0.3)) * 100 <= FLOOR < math.exp(-0.3 * (reach(100.0, 0.3) - 1)) * 100


def test_a_rank_inside_of_an_extreme_has_no_smooth_sensitivity():
    values = Counts.of(np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="1 inside of an extreme"):
        smooth_sensitivity(values, 9, Rank(0, 1, inside=1), 0.1, Neighbors("add_or_remove_one"))
