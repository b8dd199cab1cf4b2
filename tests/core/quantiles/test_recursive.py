"""Quantiles: what a record costs, ties and extremes, promises, and rank errors."""

import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.draws import Laplace
from core.gaps import Order
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.quantiles.cells import CellCounts
from core.quantiles.counts import levels_of
from core.quantiles.plan import Quantiles, plan_quantiles
from core.quantiles.recursive import UNIT, CutsAndChoices, FoundQuantiles, _cuts, ranks_of
from core.rounds import Block, run_in_memory
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
GRID = Grid((0.0,), (999.0,), 1.0)
NINE = tuple(i / 10 for i in range(1, 10))
METHODS = ["recursive", "histogram", "tree"]


def plan_for(probabilities=NINE, method="recursive", budget=None, neighbors=ADD, grid=GRID):
    params = Quantiles(probabilities, method)
    return plan_quantiles(grid, params, budget or Budget(1.0, 1e-6), neighbors, bytes(16))


def release(plan, points, noise):
    points = np.asarray(points, dtype=np.int64)
    return plan.rounds[0].release(Counts.of(points), None, noise)


def rank_errors(points, found):
    """Distance of p n from the ranks of each released point, in records."""
    points, steps = np.sort(points), np.array(found.steps)
    low, high = (np.searchsorted(points, steps, side) for side in ("left", "right"))
    ranks = np.array(found.probabilities) * len(points)
    return np.maximum(0, np.maximum(low - ranks, ranks - high))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.1, 1e-9), Budget(5.0, 1e-3)])
@pytest.mark.parametrize("probabilities", [(0.5,), (0.01,), (0.2, 0.9), NINE])
def test_the_budget_is_spent_and_not_overspent(method, neighbors, budget, probabilities):
    plan = plan_for(probabilities, method, budget, neighbors)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    assert plan.method == method


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_noise_of_the_counts_is_as_charged(neighbors):
    """Groups and cells are histograms: L1 change `moves`; halving a scale or doubling a change fails here."""
    plan = plan_for(tuple(i / 100 for i in range(1, 100)), neighbors=neighbors)
    noise = RecordingNoise(SeededNoise(0))
    points = np.random.default_rng(1).integers(0, 1000, 5000)
    release(plan, points, noise)
    drawn = [scale for kind, _, scale in noise.calls if kind == "laplace"][:2]
    charged = [m.epsilon for m in plan.mechanisms if "discrete Laplace: counts of" in m.mechanism]
    assert len(drawn) == len(charged) == 2
    assert [neighbors.moves / scale for scale in drawn] == pytest.approx(charged)
    cells, groups = [values for kind, values, _ in noise.calls if kind == "laplace"][:2]
    assert cells.sum() == groups.sum() == len(points)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("probabilities", [(0.3, 0.6), NINE, (0.01, 0.02, 0.99)])
def test_noise_of_cuts_and_choices_is_as_charged(neighbors, probabilities):
    """Every draw's range of change over its scale; those that see a common record add up to the charge."""
    plan = plan_for(probabilities, neighbors=neighbors)
    noise = RecordingNoise(SeededNoise(0))
    points = np.random.default_rng(1).integers(0, 1000, 5000)
    release(plan, points, noise)
    scales = [scale for kind, _, scale in noise.calls if kind == "select_run"]
    cuts = scales[: len(probabilities) - 1]
    level = next(m.epsilon for m in plan.mechanisms if "cuts" in m.mechanism)
    # A cut at share t weighs records t and 1 - t; the scale must be 2 max(t, 1 - t) moves / epsilon.
    assert min(cuts) >= neighbors.moves * UNIT / level * (1 - 1e-9)
    assert max(cuts) <= 2 * neighbors.moves * UNIT / level
    choices = scales[len(probabilities) - 1 :]
    charge = next(m.epsilon for m in plan.mechanisms if "in a cell" in m.mechanism)
    assert min(choices) == pytest.approx(neighbors.moves * UNIT / charge)
    # All in one cell: they share the charge.
    noise = RecordingNoise(SeededNoise(0, factor=1e-9))
    release(plan, np.full(100_000, 500), noise)
    shared = [scale for kind, _, scale in noise.calls if kind == "select_run"][len(probabilities) - 1 :]
    if shared:
        assert sum(neighbors.moves * UNIT / scale for scale in shared) == pytest.approx(charge)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize(("size", "counted_by_groups"), [(100, False), (900, True)])
def test_noise_of_a_cells_points_is_as_charged(neighbors, size, counted_by_groups):
    """All counts of one cell's points together cost what a choice does, and each sees the cell's records."""
    plan = plan_for(neighbors=neighbors, grid=Grid((0.0,), (size - 1.0,), 1.0))
    points = np.full(20_000, 50) if counted_by_groups else np.arange(20_000) % size
    charge = next(m.epsilon for m in plan.mechanisms if "in a cell" in m.mechanism)
    cells = len(plan.rounds[0].cells.draws())
    widths = []
    for seed in range(20):
        noise = RecordingNoise(SeededNoise(seed))
        release(plan, points, noise)
        draws = [(values, scale) for kind, values, scale in noise.calls if kind == "laplace"][cells:]
        while draws:
            values, scale = draws.pop(0)
            widths.append(len(values))
            spent = neighbors.moves / scale
            if len(values) > 64:
                groups, group_scale = draws.pop(0)
                assert groups.sum() == values.sum()
                spent += neighbors.moves / group_scale
            assert spent == pytest.approx(charge)
            assert values.sum() in noise.calls[len(NINE) - 1][1]
    assert len(widths) >= 10
    assert counted_by_groups == (max(widths) > 64)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("size", [5, 121, 5001])
def test_noise_of_the_histogram_is_as_charged(neighbors, size):
    """Every draw counts every record once, at the scale that its charge allows."""
    plan = plan_for(NINE, "histogram", Budget(0.7, 0.0), neighbors, Grid((0.0,), (size - 1.0,), 1.0))
    noise, points = RecordingNoise(SeededNoise(0)), np.random.default_rng(1).integers(0, size, 5000)
    release(plan, points, noise)
    assert len(noise.calls) == len(plan.mechanisms) == (1 if size == 5 else 2)
    for mechanism, (kind, values, scale) in zip(plan.mechanisms, noise.calls, strict=True):
        assert kind == "laplace" and values.sum() == len(points)
        assert neighbors.moves / scale == pytest.approx(mechanism.epsilon)
    assert sum(neighbors.moves / scale for _, _, scale in noise.calls) == pytest.approx(0.7, rel=1e-3)


def test_the_histogram_is_for_few_points():
    grid = Grid((0.0,), (float(1 << 13),), 1.0)
    with pytest.raises(ValueError, match=r"params\.method is histogram: the domain has 8,193 grid points"):
        plan_for(method="histogram", grid=grid)
    assert set(plan_for(grid=grid).alternatives) == {"tree"}


def test_ranks_ascend_and_err_no_more_than_the_sums():
    rng = np.random.default_rng(0)
    for _ in range(50):
        exact = rng.poisson(rng.choice([0, 5], 40))
        noisy = exact + rng.laplace(0, 4, 40)
        ranks, total = ranks_of(noisy)
        true, sums = (np.append(0, np.cumsum(counts)) for counts in (exact, noisy))
        assert np.all(np.diff(ranks) >= -1e-9) and total == pytest.approx(noisy.sum())
        assert np.abs(ranks - true).max() <= np.abs(sums - true).max() + 1e-9


@pytest.mark.parametrize(("p", "weight"), [(0.5, 0.5), (0.9, 0.9), (0.25, 0.75)])
def test_noise_of_one_quantile_is_as_charged(p, weight):
    """Under add_or_remove_one the range is 2 max(p, 1 - p); with n public 1/2 each way, twice for a move."""
    points = np.arange(500)
    for neighbors, expected in ((ADD, 2 * weight), (REPLACE, 2.0)):
        plan = plan_for((p,), neighbors=neighbors, budget=Budget(0.7, 0.0))
        noise = RecordingNoise(SeededNoise(0))
        release(plan, points, noise)
        [(_, _, scale)] = noise.calls
        assert expected * UNIT / scale == pytest.approx(0.7, rel=1e-3)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_noise_of_the_tree_is_as_charged(neighbors, delta):
    plan = plan_for(NINE, "tree", Budget(1.0, delta), neighbors)
    step = plan.rounds[0]
    noise = RecordingNoise(SeededNoise(0))
    points = np.random.default_rng(1).integers(0, 1000, 5000)
    release(plan, points, noise)
    assert {kind for kind, _, _ in noise.calls} == {"laplace"}
    assert len(plan.mechanisms) == levels_of(1000, step.fan_out)
    assert noise.calls[0][1].sum() == len(points)
    for mechanism, (_, _, scale) in zip(plan.mechanisms, noise.calls, strict=True):
        assert neighbors.moves / scale == pytest.approx(mechanism.epsilon)


@pytest.mark.parametrize("seed", range(5))
def test_a_record_is_counted_once_on_each_level_of_the_tree(seed):
    """All nodes counted on a level together hold each record at most once."""
    plan = plan_for(NINE, "tree", Budget(1.0, 0.0), grid=Grid((0.0,), (2.0**20,), 1.0))
    step = plan.rounds[0]
    points = np.random.default_rng(seed).integers(0, 2**20, 300)
    before, after = RecordingNoise(SeededNoise(seed)), RecordingNoise(SeededNoise(seed))
    release(plan, points, before)
    levels = levels_of(2**20 + 1, step.fan_out)
    assert len(before.calls) == levels
    assert all(values.sum() <= len(points) for _, values, _ in before.calls)
    release(plan, np.empty(0), after)
    assert sum(int(values.sum()) for _, values, _ in after.calls) == 0


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize(
    "budget", [Budget(1.0, 1e-6), Budget(1e-4, 0.0), Budget(1e-9, 1e-9), Budget(50.0, 0.1)]
)
def test_every_database_has_an_answer(method, neighbors, budget):
    databases = [[], [0], [999], [0] * 50, [999] * 50, [0] * 9 + [999] * 9, list(range(1000))]
    for probabilities in ((0.5,), NINE, (1e-10, 0.5, 1 - 1e-10)):
        plan = plan_for(probabilities, method, budget, neighbors)
        for seed, points in enumerate(databases):
            steps = release(plan, points, SeededNoise(seed)).steps
            assert len(steps) == len(probabilities)
            assert list(steps) == sorted(steps)
            assert steps[0] >= 0 and steps[-1] <= 999


@pytest.mark.parametrize("method", METHODS)
def test_ties_are_answered_by_their_point(method):
    """Point masses: every quantile well inside one is exact (each of 90 answers fails below 1e-9)."""
    points = np.repeat([10, 400, 401, 990], [30_000, 5_000, 35_000, 30_000])
    exact = [10, 10, 401, 401, 401, 401, 990, 990]
    plan = plan_for((0.1, 0.2, 0.4, 0.5, 0.6, 0.65, 0.8, 0.95), method)
    for seed in range(10):
        assert list(release(plan, points, SeededNoise(seed)).steps) == exact
    same = plan_for(NINE, method)
    assert set(release(same, np.full(20_000, 123), SeededNoise(1)).steps) == {123}


@pytest.mark.parametrize("records", [2**20, 2**35, 2**37, 2**45])
def test_cuts_of_any_number_of_records_do_not_wrap(records):
    order = Order.of_counts(Counts(np.array([10, 400]), np.array([records, records])))
    levels = (Exponential(what="cut", scale=2.0, spread=2),)
    (cut,) = _cuts(order, (0, 1000), np.array([UNIT // 2]), levels, SeededNoise(0))
    assert 10 < cut <= 400


@pytest.mark.parametrize("method", ["recursive", "tree"])
def test_huge_universes_and_many_quantiles(method):
    grid = Grid((0.0,), (2.0**31 - 2,), 1.0)
    points = np.random.default_rng(0).integers(2**30, 2**30 + 10**6, 100_000)
    probabilities = tuple(i / 1000 for i in range(1, 1000))
    found = release(plan_for(probabilities, method, grid=grid), points, SeededNoise(0))
    assert rank_errors(points, found).mean() < 0.02 * len(points)


def typical(method, count, points, runs=20):
    plan = plan_for(tuple(i / (count + 1) for i in range(1, count + 1)), method, Budget(1.0, 0.0))
    errors = [rank_errors(points, release(plan, points, SeededNoise(s))) for s in range(runs)]
    return float(np.sqrt(np.mean(np.square(errors)))), plan.promises["typical_rank_error"]


@pytest.mark.parametrize(
    ("method", "count"),
    [("recursive", 1), ("recursive", 9), ("recursive", 99), ("histogram", 9), ("tree", 9)],
)
def test_typical_error_is_typical(method, count):
    """Dense records: the root mean square over quantiles and runs is within a factor of 1.7 of the plan's."""
    points = np.random.default_rng(1).permutation(np.arange(2000) // 2)
    measured, promised = typical(method, count, points)
    assert measured <= 1.7 * promised + 2


def promise_breaks(method, neighbors, runs):
    plan = plan_for(NINE, method, Budget(1.0, 1e-6), neighbors)
    rng, broken = np.random.default_rng(7), 0
    for seed in range(runs):
        kind = seed % 3
        points = [
            rng.integers(0, 1000, 3000),
            np.repeat(rng.integers(0, 1000, 3), 1500),
            np.minimum(999, rng.geometric(0.05, 2000)),
        ][kind]
        found = release(plan, points, SeededNoise(seed))
        broken += bool(rank_errors(points, found).max() > plan.promises["rank_error"])
    return broken


@pytest.mark.parametrize("method", METHODS)
def test_promise_holds_short(method):
    """30 runs, failure 0.1: more than 3 + 3 sd broken promises would need a broken bound."""
    assert promise_breaks(method, ADD, 30) <= 3 + 3 * math.sqrt(30 * 0.09)


@pytest.mark.audit
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_promise_holds(method, neighbors):
    """300 runs: a promise at failure 0.1 is broken in at most 0.1 + 3 standard deviations of them."""
    assert promise_breaks(method, neighbors, 300) <= 30 + 3 * math.sqrt(300 * 0.09)


def test_auto_takes_the_smaller_typical_error_and_shows_the_other():
    few, many = plan_for(NINE, "auto"), plan_for(NINE, "auto", grid=Grid((0.0,), (9.0,), 1.0))
    assert few.method == "recursive"
    assert many.method == "histogram"
    for plan in (few, many):
        assert len(plan.alternatives) == 2
        for other in plan.alternatives.values():
            assert plan.promises["typical_rank_error"] <= other["typical_rank_error"]


def test_auto_weighs_the_number_of_points_against_that_of_quantiles():
    """Ages, hours: counts of every point for many quantiles; few quantiles or more points: cuts first."""
    many = tuple(i / 100 for i in range(1, 100))
    ages, delays = Grid((0.0,), (120.0,), 1.0), Grid((-120.0,), (1500.0,), 1.0)
    assert plan_for(many, "auto", grid=ages).method == "histogram"
    assert plan_for(NINE, "auto", grid=ages).method == "recursive"
    assert plan_for(many, "auto", grid=delays).method == "recursive"


def test_the_plan_says_how_many_bytes_the_counts_take():
    few = plan_for(NINE, "auto")
    assert "bytes" in few.notes[1]


def test_beam_sees_counts_and_the_result_is_in_data_units():
    grid = Grid((-90.0,), (90.0,), 0.5)
    plan = plan_for((0.25, 0.75), grid=grid)
    assert isinstance(plan.rounds[0], CutsAndChoices)
    points = grid.quantize(np.random.default_rng(0).normal(0, 30, (5000, 1)))
    blocks = [Block(part, np.arange(len(part), dtype=np.uint64)) for part in np.array_split(points, 3)]
    found = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(0))
    assert found == release(plan, points[:, 0], SeededNoise(0))
    assert FoundQuantiles((0.25, 0.5), (0, 181)).result(grid) == {
        "probabilities": [0.25, 0.5],
        "values": [-90.0, 0.5],
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"probabilities": ()}, r"params\.probabilities has 0 values"),
        ({"probabilities": (0.5, 1.0)}, r"params\.probabilities has 1\.0"),
        ({"probabilities": (0.0,)}, r"params\.probabilities has 0\.0"),
        ({"probabilities": (0.5, 0.5)}, r"params\.probabilities is \[0\.5, 0\.5\]"),
        ({"probabilities": (math.nan,)}, r"params\.probabilities has nan"),
        ({"probabilities": (0.5,), "method": "best"}, r"params\.method is 'best'"),
        ({"probabilities": (0.5,), "failure": 1.0}, r"params\.failure is 1\.0"),
    ],
)
def test_bad_parameters_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        Quantiles(**values)


def test_several_columns_are_refused():
    with pytest.raises(ValueError, match=r"domain\.lower has 2 values"):
        plan_for(grid=Grid((0.0, 0.0), (9.0, 9.0), 1.0))
