"""Smooth sensitivity of order statistics against its definition on all small databases."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.aggregate import Counts
from core.mechanisms.exponential import Exponential
from core.mechanisms.smooth_bound import FLOOR, reach, smooth_bound
from core.neighbors import Neighbors
from core.noise import Noise
from core.order_statistics import Rank, _largest_gap, choose_by_rank, order_statistic, smooth_sensitivity
from tests.core.exact import excess

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


@pytest.mark.parametrize("quantile", [0.0, 1.0])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_just_above_the_floor_it_equals_brute_force(quantile, relation):
    """All databases of n zeros and ones: the farthest ranks that matter do, and those beyond do not."""
    upper, beta, rank = 1, 3.0, Rank.of_quantile(quantile)
    most = reach(upper, beta) + 2
    sizes = (most,) if relation is REPLACE else range(2 * most)
    table = [(n - ones, ones) for n in sizes for ones in range(n + 1)]
    gaps = np.array([gap(h, upper, rank) for h in table])
    near = set()
    for h in (h for h in table if sum(h) <= most):
        moved = np.abs(np.array(table) - np.array(h))
        distance = moved.max(axis=1) if relation is REPLACE else moved.sum(axis=1)
        expected = max(FLOOR, (np.exp(-beta * distance) * gaps).max())
        assert smooth_sensitivity(counts(unfolded(h)), upper, rank, beta, relation) == pytest.approx(expected)
        near |= {expected}
    assert min(near) == FLOOR and any(FLOOR < each < FLOOR * math.exp(beta) for each in near)


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


ranked = st.lists(st.tuples(st.integers(0, 30) | st.integers(0, 2**31), st.integers(1, 5)), max_size=40)


@settings(max_examples=300, deadline=None)
@given(ranked, ranked, st.sampled_from([0.001, 0.02, 0.5, 3.0]), st.sampled_from([None, *QUANTILES, 0.001]))
def test_branch_and_bound_finds_the_largest_of_all_pairs(lower, higher, beta, quantile):
    """Bit for bit, with costs under both relations."""
    ends = []
    for pairs in (lower, higher):
        values, steps = (
            (np.array(sorted(column), dtype=np.int64) for column in zip(*pairs, strict=True))
            if (pairs)
            else (np.empty(0, np.int64), np.empty(0, np.int64))
        )
        ends.append((values, np.cumsum(steps)))
    (low, i), (high, j) = ends
    records = int(max(i.max(initial=0), j.max(initial=0)))

    def costs(i_first, i_last, j_first, j_last):
        cost = j_first - i_last - 1
        if quantile is not None:
            rank = Rank.of_quantile(quantile)
            cost = cost + rank.changes_within(i_first, i_last, records + 1 - j_last, records + 1 - j_first)
        return np.maximum(cost, 0)

    i_all, j_all = np.broadcast_arrays(i[:, None], j[None, :])
    gaps = np.maximum(high[None, :] - low[:, None], 0)
    expected = (gaps * np.exp(-beta * costs(i_all, i_all, j_all, j_all))).max(initial=FLOOR)
    assert _largest_gap((low, i), (high, j), costs, beta) == expected


@given(st.sampled_from([*QUANTILES, 0.001]), st.tuples(*[st.integers(0, 9)] * 4))
def test_the_fewest_moves_of_a_block_are_those_of_its_best_pair(quantile, ends):
    rank, (a, b, c, d) = Rank.of_quantile(quantile), ends
    below, above = np.meshgrid(np.arange(min(a, b), max(a, b) + 1), np.arange(min(c, d), max(c, d) + 1))
    corners = (np.array(x) for x in (min(a, b), max(a, b), min(c, d), max(c, d)))
    assert rank.changes_within(*corners) == rank.changes_within(below, below, above, above).min()


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("quantile", [0.0, 0.5, 1.0])
def test_a_wide_domain_takes_no_longer(relation, quantile):
    """100,000 distinct values of 2^31, where 10^10 pairs are near enough to matter: about 0.05 s each."""
    upper, rank = 2**31 - 1, Rank.of_quantile(quantile)
    rng = np.random.default_rng(0)
    uniform = rng.integers(0, upper, 100_000)
    heavy = np.minimum(upper, np.exp(rng.normal(12, 3, 100_000))).astype(np.int64)
    start = time.perf_counter()
    for values, beta in itertools.product((uniform, heavy), (0.2, 2e-4)):
        assert FLOOR < smooth_sensitivity(Counts.of(values), upper, rank, beta, relation) <= upper
    assert time.perf_counter() - start < 20


class Scores(Noise):
    """Keeps the scores of a selection and its scale; the first candidate wins."""

    def select(self, scores, scale):
        self.scores, self.scale = np.array(scores), scale
        return 0

    def select_run(self, scores, lengths, scale):
        self.scores, self.lengths, self.scale = np.array(scores), np.array(lengths), scale
        return 0

    def below(self, bound):
        return 0


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("quantile", [0.0, 0.3, 0.5, 1.0])
def test_rank_scores_move_by_one(relation, quantile):
    """All databases of up to 4 values in 0..3 and their neighbors: exact output masses within e^epsilon."""
    epsilon, upper, rank = 0.7, 3, Rank.of_quantile(quantile)

    def masses(values):
        noise = Scores()
        choose_by_rank(
            Counts.of(np.array(values, dtype=np.int64)),
            upper,
            rank,
            Exponential.of("value", epsilon, 2),
            noise,
        )
        gaps = [v for v in range(upper + 1) if v not in values]
        weights = np.exp(noise.scores / noise.scale)
        by_value = {}
        # Runs come as gaps in order, then values in order.
        order = [run for run in _runs(gaps)] + [[v] for v in sorted(set(values))]
        for run, weight in zip(order, weights, strict=True):
            by_value.update(dict.fromkeys(run, weight))
        p = np.array([by_value[v] for v in range(upper + 1)])
        return p / p.sum()

    worst = 0.0
    for size in range(5):
        for values in itertools.combinations_with_replacement(range(upper + 1), size):
            adds = relation.name == "add_or_remove_one"
            kept = values if adds else values[1:]
            if not adds and size == 0:
                continue
            for other in range(upper + 1):
                p, q = masses(values), masses((*kept, other))
                assert excess(p, q, epsilon) <= 1e-12
                assert excess(q, p, epsilon) <= 1e-12
                worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert worst > 0.4 * epsilon


def _runs(values):
    runs = []
    for v in values:
        if runs and runs[-1][-1] == v - 1:
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs
