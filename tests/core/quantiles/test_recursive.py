"""Splits, counts of cells and searches: what each record costs."""

import itertools

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.gaps import MOST_RECORDS, Order
from core.quantiles.aim import UNIT
from core.quantiles.cells_and_searches import outcomes, tree_within
from core.quantiles.params import Quantiles
from core.quantiles.recursive import Recursive
from core.quantiles.task import QUANTILES
from core.task import Setting
from tests.core.quantiles.planned import ADD, GRID, NINE, REPLACE, plan_for, rank_errors, release
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_noise_of_the_counts_is_as_charged(neighbors):
    """Groups and cells are histograms: L1 change `moves`; halving a scale or doubling a change fails here."""
    plan = plan_for(tuple(i / 100 for i in range(1, 100)), neighbors=neighbors)
    noise = RecordingNoise(SeededNoise(0))
    points = np.random.default_rng(1).integers(0, 1000, 5000)
    release(plan, points, noise)
    calls = [(values, scale) for _, values, scale in noise.calls if values.sum() == len(points)]
    calls = [(values, scale) for values, scale in calls if len(values) > 1]
    (fine, _), (cells, _), (groups, _) = calls
    charged = [
        m.epsilon for m in plan.mechanisms if "counts of " in m.mechanism and "tree" not in m.mechanism
    ]
    assert len(charged) == 3
    assert [neighbors.changes / scale for _, scale in calls] == pytest.approx(charged)
    assert len(fine) >= len(cells) > len(groups)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_splits_are_charged_for_every_change(neighbors):
    """Exact losses of splits are in `core.mechanisms`; here they are those of the neighbor relation."""
    plan = plan_for(neighbors=neighbors)
    splits = plan.rounds[0].splits
    assert (splits.changes, splits.replaced) == (neighbors.changes, neighbors is REPLACE)
    assert splits in plan.rounds[0].draws()


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_hardly_more_cells_than_quantiles_are_counted_precisely(neighbors):
    """Half of the records have one value; without merging twice as many cells were counted."""
    plan, noise = (
        plan_for(neighbors=neighbors, grid=Grid((0.0,), (1e6,), 1.0)),
        RecordingNoise(SeededNoise(0)),
    )
    points = np.append(np.full(50_000, 333), np.random.default_rng(1).integers(0, 10**6, 50_000))
    release(plan, points, noise)
    counted = [len(values) for _, values, scale in noise.calls if values.sum() == len(points)]
    assert counted[-2] >= 12 and counted[-1] <= 9, counted


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
@pytest.mark.parametrize("probabilities", [(0.3, 0.6), NINE, (0.01, 0.02, 0.99)])
def test_noise_of_searches_is_as_charged(neighbors, probabilities):
    """All that one cell is asked spends the charge together, whether points are chosen or counted."""
    plan = plan_for(probabilities, neighbors=neighbors, grid=Grid((0.0,), (1e6,), 1.0))
    step, kinds = plan.rounds[0], set()
    charge = next(m.epsilon for m in plan.mechanisms if "in a cell" in m.mechanism)
    clump = np.arange(500_000, 503_000)
    for points in (np.random.default_rng(1).integers(0, 10**6, 5000), clump, clump[::30]):
        for sharing in (1, 2, 50):
            noise = RecordingNoise(SeededNoise(0))
            ends, wanted = np.array([0.0, len(points)]), np.linspace(0.2, 0.8, sharing) * len(points)
            step._search(Order.of_counts(Counts.of(points)), (0, 10**6), ends, wanted, 20.0, noise)
            kinds |= {kind for kind, _, _ in noise.calls}
            unit = UNIT if noise.calls[0][0] == "select_run" else 1
            spent = sum(neighbors.changes * unit / scale for _, _, scale in noise.calls)
            assert spent == pytest.approx(charge)
    assert kinds == {"select_run", "laplace"}


@pytest.mark.parametrize("many", [20, 99])
def test_the_searches_of_all_intervals_fail_with_half_of_the_failure(many):
    """By a tree a value may err to both sides, and each end of its interval to one: four failures each."""
    plan = plan_for(tuple((i + 1) / (many + 1) for i in range(many)), grid=Grid((0.0,), (1e6,), 1.0))
    step, tree = plan.rounds[0], tree_within(10**6, many)
    order, ends = Order.of_counts(Counts.of(np.arange(5000) * 200)), np.array([0.0, 5000.0])
    found = step._search(order, (0, 10**6), ends, np.linspace(10, 4990, many), 20.0, SeededNoise(0))
    one_side = tree.errors_exceed(step.inside.scale * tree.levels, np.array([found.error]), 1, 1)[0] / 2
    assert 0.49 * step.failure < 4 * many * one_side <= 0.5 * step.failure


@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_splits_and_the_number_of_records_are_as_charged(neighbors):
    plan = plan_for(neighbors=neighbors)
    noise = RecordingNoise(SeededNoise(0))
    release(plan, np.arange(5000) % 1000, noise)
    total, splits = ([m for m in plan.mechanisms if name in m.mechanism] for name in ("number", "splits"))
    scales = [scale for _, _, scale in noise.calls]
    assert len(total) == (neighbors == ADD)
    if total:
        assert noise.calls[0][1].tolist() == [5000]
        assert 1 / scales.pop(0) == pytest.approx(total[0].epsilon)
    draw = plan.rounds[0].splits
    assert scales[0] == draw.scale
    assert splits[0].epsilon == pytest.approx(draw.cost.epsilon)


@pytest.mark.parametrize(("p", "weight"), [(0.5, 0.5), (0.9, 0.9), (0.25, 0.75)])
def test_noise_of_one_quantile_is_as_charged(p, weight):
    """Under add_or_remove_one the range is 2 max(p, 1 - p); with n public 1/2 each way, twice for a move."""
    points = np.arange(500)
    for neighbors, expected in ((ADD, 2 * weight), (REPLACE, 2.0)):
        plan = plan_for((p,), neighbors=neighbors, budget=Budget(0.7, 0.0))
        noise = RecordingNoise(SeededNoise(0))
        release(plan, points, noise)
        for (_, _, scale), part in zip(noise.calls, (0.05, 0.95), strict=True):
            assert expected * UNIT / scale == pytest.approx(0.7 * part, rel=1e-3)


@pytest.mark.parametrize("records", [2**20, 2**35, 2**37, 2**45])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_searches_among_any_number_of_records_do_not_wrap(records, neighbors):
    plan = plan_for((0.2, 0.5, 0.8), neighbors=neighbors, grid=Grid((0.0,), (2.0**31,), 1.0))
    counts = Counts(np.array([10, 400, 10**9]), np.array([records, records, records]))
    steps = plan.rounds[-1].whole.release(counts, None, SeededNoise(0)).steps
    assert steps == (10, 400, 10**9) or (records > MOST_RECORDS and steps[0] < steps[1] == 400 < steps[2])


@pytest.mark.parametrize("many", [2, 3, 5, 9])
@pytest.mark.parametrize("width", [2, 30, 1000, 1 << 14, 1 << 20])
def test_the_promise_allows_for_the_smallest_part_of_a_cell_that_a_choice_can_have(many, width):
    """Over all numbers of quantiles in the cell, with and without intervals: no less, and no more."""
    grid, given = Grid((0.0,), (2.0**20 - 1,), 1.0), Quantiles(tuple(i / 20 for i in range(1, many + 1)))
    method = Recursive(Setting(grid, given, Budget(1.0, 1e-6), ADD, bytes(16)))
    (step,), found = method.rounds(1.0), {}
    for sharing, records in itertools.product(range(1, many + 1), (1.0, 1e12)):
        if tree_within(width, sharing) is None:
            choices, _ = step.choices(width, np.array([0.0, records]), np.full(sharing, records / 2), 0.0)
            bracketed = len(choices) > 1
            parts = choices[1 if bracketed else 0].parts
            found[bracketed] = max(found.get(bracketed, (0.0, 0)), (parts, outcomes(width, bracketed)))
    assert sorted(method._choices(width)) == sorted(found.values())


@pytest.mark.parametrize("many", [30, 50, 99])
def test_the_promise_covers_every_number_of_cells_that_merging_may_leave(many):
    """Groups grow with the number of cells, so errors do not grow evenly with it."""
    grid, given = Grid((0.0,), (2.0**20 - 1,), 1.0), Quantiles(tuple(i / 100 for i in range(1, many + 1)))
    method = Recursive(Setting(grid, given, Budget(1.0, 1e-6), ADD, bytes(16)))
    bounds, between = np.array([80.0, 120.0, 160.0]), (0.01, many / 100)  # of a number that is not known
    promised = method._ranks_exceed(1.0, bounds)
    for cells in range(2, method._most + 1, 5):
        scales = method._cells(1.0).over(cells).scales
        assert (scales.errors_exceed(cells, bounds, between) <= 1.02 * promised + 1e-12).all(), cells


HARD = {
    "one end": np.repeat([0, 2**31 - 1], [245, 105]),
    "two ties": np.repeat([10**9, 10**9 + 2**18], [200, 200]),
    "dense": 10**9 + np.arange(1500) % 300,
}


@pytest.mark.parametrize("shape", HARD)
def test_the_promise_of_nine_quantiles_in_a_wide_domain_holds_where_it_is_hardest(shape):
    """40 runs at failure 0.1: 16 break with probability 1e-6. At one end errors reach a third of it."""
    plan, values = plan_for(budget=Budget(1.0, 0.0), grid=Grid((0.0,), (2.0**31 - 1,), 1.0)), HARD[shape]
    counts, whole = Counts.of(values), plan.rounds[-1].whole
    found = [whole.release(counts, None, SeededNoise(seed)) for seed in range(40)]
    errors = np.array([rank_errors(values, each).max() for each in found])
    promised = plan.promises["rank_error"]
    assert (errors > promised).sum() <= 15
    if shape == "one end":
        assert promised <= 3.3 * np.quantile(errors, 0.9)


@pytest.mark.parametrize(
    ("many", "width", "neighbors", "most"), [(9, 100, ADD, 120), (9, 100, REPLACE, 224), (49, 100, ADD, 40)]
)
def test_the_promise_in_a_narrow_domain_joins_the_errors_of_ranks_and_searches(many, width, neighbors, most):
    """They were 150, 296 and 67, when the bounds of both errors were added up and each was by Chernoff."""
    given = tuple(i / (many + 1) for i in range(1, many + 1))
    plan = plan_for(given, "recursive", Budget(1.0, 0.0), neighbors, Grid((0.0,), (width - 1.0,), 1.0))
    assert plan.promises["rank_error"] <= most


def test_a_promise_may_fail_with_any_small_probability():
    """Planning never ended where a billionth, or less, was shared by many quantiles."""
    errors = [
        QUANTILES.plan(
            GRID, Quantiles(NINE, "recursive", failure=failure), Budget(1.0, 0.0), ADD, bytes(16)
        ).promises["rank_error"]
        for failure in (0.1, 1e-9, 1e-20, 1e-100)
    ]
    assert errors == sorted(errors)
    assert errors[-1] < 100 * errors[0]
