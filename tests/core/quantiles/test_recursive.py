"""Cuts, counts of cells and choices: what each record costs."""

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.gaps import Order
from core.mechanisms.exponential import Exponential
from core.quantiles.exponential import UNIT
from core.quantiles.recursive import _cuts
from tests.core.quantiles.planned import ADD, NINE, REPLACE, plan_for, release
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise


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
    assert [neighbors.changes / scale for scale in drawn] == pytest.approx(charged)
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
    assert min(cuts) >= neighbors.changes * UNIT / level * (1 - 1e-9)
    assert max(cuts) <= 2 * neighbors.changes * UNIT / level
    choices = scales[len(probabilities) - 1 :]
    charge = next(m.epsilon for m in plan.mechanisms if "in a cell" in m.mechanism)
    assert min(choices) == pytest.approx(neighbors.changes * UNIT / charge)
    # All in one cell: they share the charge.
    noise = RecordingNoise(SeededNoise(0, factor=1e-9))
    release(plan, np.full(100_000, 500), noise)
    shared = [scale for kind, _, scale in noise.calls if kind == "select_run"][len(probabilities) - 1 :]
    if shared:
        assert sum(neighbors.changes * UNIT / scale for scale in shared) == pytest.approx(charge)


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
            spent = neighbors.changes / scale
            if len(values) > 64:
                groups, group_scale = draws.pop(0)
                assert groups.sum() == values.sum()
                spent += neighbors.changes / group_scale
            assert spent == pytest.approx(charge)
            assert values.sum() in noise.calls[len(NINE) - 1][1]
    assert len(widths) >= 10
    assert counted_by_groups == (max(widths) > 64)


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


@pytest.mark.parametrize("records", [2**20, 2**35, 2**37, 2**45])
def test_cuts_of_any_number_of_records_do_not_wrap(records):
    order = Order.of_counts(Counts(np.array([10, 400]), np.array([records, records])))
    levels = (Exponential(what="cut", scale=2.0, spread=2),)
    (cut,) = _cuts(order, (0, 1000), np.array([UNIT // 2]), levels, SeededNoise(0))
    assert 10 < cut <= 400
