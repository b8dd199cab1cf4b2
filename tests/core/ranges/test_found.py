"""Rectangles: their noise, bounds that hold however records lie, and errors against a grid of equal cells."""

import itertools
import math
import tracemalloc
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import core.ranges.found
import core.ranges.methods
from core.aggregate import CellCounts
from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.mechanisms.tails import largest_one, variance
from core.neighbors import Neighbors
from core.policy import Distance, Policy
from core.ranges.boxes import MOST_CELLS, Boxes, Cells, Equal
from core.ranges.found import Asked, CountedCells
from core.ranges.params import Ranges
from core.ranges.task import RANGES
from core.rounds import Block, run_in_memory
from tests.core.recording import RecordingNoise
from tests.core.seeded import SeededNoise
from tests.measured.cases import settings
from tests.measured.trials import measure

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
PLANE = Grid((0.0, -10.0), (1023.0, 757.0), 1.0)
SPACE = Grid((0.0, 0.0, 0.0), (127.0, 90.0, 40.0), 1.0)
METHODS = ("tree", "grid")


def plan_for(
    method: str = "auto",
    ranges: Any = (),
    grid: Grid = PLANE,
    budget: Budget | None = None,
    neighbors: Neighbors = ADD,
    **more: Any,
) -> Any:
    params = Ranges(ranges, method, **more)
    return RANGES.plan(grid, params, budget or Budget(1.0, 0.0), neighbors, bytes(16))


def released(plan: Any, points: np.ndarray, seed: int = 0) -> CountedCells:
    ids = np.arange(len(points), dtype=np.uint64)
    blocks = [Block(points[part], ids[part]) for part in np.array_split(np.arange(len(points)), 2)]
    found: CountedCells = run_in_memory(plan.rounds, blocks, plan.start, SeededNoise(seed))
    return found


def clumped(n: int, grid: Grid = PLANE, seed: int = 0) -> np.ndarray:
    """Records in a few round clumps, and some spread evenly."""
    rng, extents = np.random.default_rng(seed), np.asarray(grid.extents)
    centers = rng.random((8, len(extents))) * extents
    points = centers[rng.integers(0, 8, n)] + rng.normal(0, extents / 60, (n, len(extents)))
    even = rng.random((n, 1)) < 0.1
    return np.clip(np.where(even, rng.random(points.shape) * extents, points), 0, extents).astype(np.int64)


def some_rectangles(grid: Grid, count: int, seed: int = 1) -> Any:
    rng, low, high = np.random.default_rng(seed), np.array(grid.lower), np.array(grid.upper)
    ends = np.sort(low + rng.random((count, 2, grid.dimension)) * (high - low), axis=1)
    return tuple(tuple(zip(*each, strict=True)) for each in ends.tolist())


def exact(points: np.ndarray, grid: Grid, sides: Any) -> int:
    values = np.asarray(grid.restore(points))
    low, high = np.array(sides).T
    return int(((values >= low - 1e-9) & (values <= high + 1e-9)).all(axis=1).sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("grid", [PLANE, SPACE], ids=["plane", "space"])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
def test_bounds_of_all_rectangles_hold_at_once(method: str, grid: Grid, neighbors: Neighbors) -> None:
    """40 runs at failure 0.3: more than 12 + 4.5 * 2.9 runs with a broken bound show a wrong one."""
    points, ranges = clumped(5000, grid), some_rectangles(grid, 12)
    plan = plan_for(method, ranges, grid, neighbors=neighbors, failure=0.3)
    true = [exact(points, grid, sides) for sides in ranges]
    broken = cells = 0
    for seed in range(40):
        found = released(plan, points, seed)
        asked = found.result(grid).ranges
        broken += any(not each.low <= n <= each.high for each, n in zip(asked, true, strict=True))
        whole = np.bincount(found.cells.find(points), minlength=len(found.counts))
        cells += np.abs(found.estimates - whole).max() > plan.promises["cell_error"]
    assert broken <= 25 and cells <= 25


@pytest.mark.parametrize("method", METHODS)
def test_a_rectangle_that_ends_at_points_far_from_0_holds_their_records(method: str) -> None:
    grid = Grid((5_000_000.1, 0.0), (5_000_102.4, 3.0), 0.1)
    points = np.repeat(np.array([[k, 7] for k in range(0, 1024, 31)]), 10, axis=0)
    sides = tuple(((x, x), (0.0, 3.0)) for x in np.unique(grid.restore(points)[:, 0]).tolist())
    plan = plan_for(method, sides, grid, budget=Budget(1000.0, 0.0))
    assert min(each.high for each in released(plan, points).result(grid).ranges) >= 10


@pytest.mark.parametrize("method", METHODS)
def test_bounds_of_a_rectangle_of_whole_cells_are_close(method: str) -> None:
    """The whole domain: the bounds are a few standard errors from the count."""
    ranges = (((0.0, 1023.0), (-10.0, 757.0)),)
    found = released(plan_for(method, ranges), clumped(20_000))
    (whole,) = found.result(PLANE).ranges
    assert whole.count == pytest.approx(found.estimates.sum())
    assert whole.high - whole.low <= 8 * whole.standard_error + 2
    assert abs(whole.count - 20_000) <= 6 * whole.standard_error


def test_the_standard_error_is_that_of_the_noise() -> None:
    """Fixed cells: 600 releases of their counts. A standard deviation is within 15% but for 1e-6."""
    boxes = Boxes.of(Equal.of((12, 12), 2), np.arange(5))
    cells = Cells(boxes, np.array([[3, 3], [1, 1], [2, 2], [6, 2]]))
    step = plan_for("grid").rounds[-1]
    points = np.random.default_rng(0).integers(0, 12, (300, 2))
    block = Block(points, np.arange(300, dtype=np.uint64))
    total = step.summarize(block, cells)
    found = [step.release(total, cells, SeededNoise(seed)) for seed in range(600)]
    for first, last in (([0, 0], [11, 11]), ([0, 0], [5, 5]), ([1, 2], [7, 11]), ([2, 2], [3, 3])):
        shares = found[0].shares(np.array(first), np.array(last))
        sums = np.array([shares @ each.estimates for each in found])
        assert sums.std() == pytest.approx(found[0].noise_variance(shares) ** 0.5, rel=0.15)
        partly = shares @ np.bincount(cells.find(points), minlength=len(shares))
        assert abs(sums.mean() - partly) <= 5 * sums.std() / 600**0.5
    alone = found[0].table(Grid((0.0, 0.0), (11.0, 11.0), 1.0))
    assert (alone["standard_error"] <= variance(step.cells.scale) ** 0.5 * 1.0001).all()


def test_inference_is_least_squares() -> None:
    """The estimates are those that weighted least squares gives, on a box of three cells."""
    boxes = Boxes.of(Equal.of((3, 1), 1), np.arange(2))
    cells = Cells(boxes, np.array([[3, 1]]))
    found = CountedCells(cells, np.array([30]), np.array([2, 9, 7]), 3.0, 5.0, Asked((), 0.1))
    rows = np.vstack([np.eye(3), np.ones((1, 3))])
    noise = np.array([variance(5.0)] * 3 + [variance(3.0)]) ** -0.5
    fitted = np.linalg.lstsq(rows * noise[:, None], np.array([2, 9, 7, 30]) * noise, rcond=None)[0]
    assert found.estimates == pytest.approx(fitted)


@pytest.mark.parametrize("method", METHODS)
def test_much_better_than_a_flat_noisy_grid(method: str) -> None:
    """20 random rectangles, 3 releases: at most half of the error of 256 x 256 noisy cells."""
    points, ranges = clumped(50_000, seed=3), some_rectangles(PLANE, 20, seed=4)
    true = np.array([exact(points, PLANE, sides) for sides in ranges])
    plan = plan_for(method, ranges)
    ours = [[each.count for each in released(plan, points, s).result(PLANE).ranges] for s in range(3)]
    cells = Cells(
        Boxes.of(Equal.of((1024, 768), 256), np.arange((1 << 16) + 1)), np.ones((1 << 16, 2), np.int64)
    )
    counts = np.bincount(cells.find(points), minlength=1 << 16)
    rng, flat = np.random.default_rng(0), []
    for _ in range(3):
        noisy = counts + rng.laplace(0, 1, len(counts))
        zeros = np.zeros(len(counts), np.int64)
        found = CountedCells(cells, zeros, zeros, 1.0, 1.0, Asked((), 0.1))
        corners = [np.array(sides).T - np.array(PLANE.lower) for sides in ranges]
        shares = [found.shares(np.ceil(low), np.floor(high)) for low, high in corners]
        flat.append([share @ noisy for share in shares])
    errors = [np.abs(np.array(each) - true).mean() for each in (ours, flat)]
    assert errors[0] < errors[1] / 2


def test_the_splits_are_charged_for_the_relation() -> None:
    """By the bounds that `Splits` proves for an added record and for a replaced one, of the same epsilon."""
    for neighbors in (ADD, REPLACE):
        (draw,) = plan_for("tree", neighbors=neighbors).rounds[0].draws()
        assert draw.changes == neighbors.changes
        assert draw.cost.epsilon <= 0.2 * 1.0001


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
def test_the_number_of_rows_is_drawn_unless_it_is_public(neighbors: Neighbors) -> None:
    """Everything that is drawn spends the budget, with sensitivities of the relation."""
    plan = plan_for("grid", neighbors=neighbors)
    step, private = plan.rounds[0], neighbors is ADD
    noise = RecordingNoise(SeededNoise(0))
    step.release(step.summarize(Block(clumped(100), np.arange(100)), None), None, noise)
    assert [(kind, values.tolist()) for kind, values, _ in noise.calls] == [("laplace", [100])] * private
    draws = plan.rounds[1].sizes, plan.rounds[2].boxes, plan.rounds[2].cells
    spent = sum(neighbors.histogram().l1 / draw.scale for draw in draws)
    assert 0.999 < spent + sum(1 / scale for *_, scale in noise.calls) < 1 + 1e-9


def test_auto_has_the_smaller_expected_error() -> None:
    plan = plan_for()
    assert plan.method == min(plan.chosen.errors, key=plan.chosen.errors.get)
    assert set(plan.alternatives) == set(METHODS) - {plan.method}


def test_auto_errs_little_more_than_the_better_method_on_every_shape() -> None:
    """Also on ties and clumps in narrow domains, where most of a grid's boxes are empty and noisy."""
    narrow = [cases for cases in settings("ranges") if max(cases[0].grid.extents) < 64]
    tried = [cases for cases in narrow if (cases[0].n, cases[0].epsilon) == (2_000, 0.3)]
    for case in itertools.chain(*tried):
        runs, taken = measure(case, 4, all_methods=True)
        assert taken is not None
        assert runs[taken].error <= 3 * min(each.error for each in runs.values()), case.name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.0), Budget(0.01, 1e-6), Budget(1e-9, 0.0)], ids=str)
def test_every_database_has_an_answer(method: str, neighbors: Neighbors, budget: Budget) -> None:
    plan = plan_for(method, some_rectangles(PLANE, 2), budget=budget, neighbors=neighbors)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    for n in (0, 1, 50):
        found = released(plan, clumped(n))
        assert 0 < len(found.counts) <= 1 << 20
        assert all(0 <= each.low <= each.high for each in found.result(PLANE).ranges) or n < 50


def test_the_table_answers_a_rectangle_as_the_release_does() -> None:
    ranges = some_rectangles(PLANE, 3)
    found = released(plan_for("tree", ranges), clumped(3000))
    table = found.table(PLANE)
    for each in found.result(PLANE).ranges:
        part = np.ones(len(table["count"]))
        for axis in (0, 1):
            first, last = table[f"first_{axis}"], table[f"last_{axis}"]
            low, high = np.ceil(each.lower[axis]), np.floor(each.upper[axis])
            inside = np.minimum(last, high) - np.maximum(first, low) + 1
            part *= np.maximum(inside, 0) / (last - first + 1)
        assert part @ table["count"] == pytest.approx(each.count)


def test_errors_of_a_table_and_the_number_of_rows_are_those_of_the_estimates() -> None:
    """Of each cell, of the cells of each box together, and of all cells."""
    found = released(plan_for("tree"), clumped(3000))
    table, one = found.table(PLANE), np.eye(len(found.counts))
    boxes = table["box"][:, None] == table["box"]
    for column, shares in (("standard_error", one), ("box_standard_error", boxes)):
        expected = [math.sqrt(found.noise_variance(each.astype(float))) for each in shares]
        assert table[column] == pytest.approx(expected)
    assert found.result(PLANE).total == round(float(table["count"].sum()))


def test_a_policy_of_distances_does_not_lower_the_noise() -> None:
    near = plan_for(neighbors=Neighbors("replace_one", Policy(Distance(2))))
    full = plan_for(neighbors=REPLACE)
    assert near.policy is None and near.promises == full.promises
    assert any("does not lower the noise" in note for note in near.notes)


@pytest.mark.parametrize(
    ("grid", "ranges", "said"),
    [
        (Grid((0.0,), (9.0,), 1.0), (), "columns has 1 columns: ranges takes two or three, and cdf one"),
        (Grid((0.0,) * 4, (9.0,) * 4, 1.0), (), "columns has 4 columns"),
        (PLANE, (((0.0, 1.0),),), "ranges has a rectangle of 1 pairs"),
        (Grid((0, 0), (2**40, 2**40), 1), (), "too large for exact int64 distances"),
        (PLANE, (((0.0, 1.0), (-1e7, -1e6)),), "it lies outside of the domain, where no row is counted"),
        (PLANE, (((1e6, 1e7), (0.0, 1.0)),), "it lies outside of the domain"),
    ],
    ids=["line", "four", "pairs", "wide", "below", "above"],
)
def test_what_is_refused(grid: Grid, ranges: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        plan_for("auto", ranges, grid)


@pytest.mark.parametrize(
    "ranges",
    [(((2.0, 1.0), (0.0, 1.0)),), (((0.0, float("nan")), (0.0, 1.0)),), (((0.0, 1.0, 2.0), (0.0, 1.0)),)],
    ids=["order", "nan", "three ends"],
)
def test_rectangles_that_are_none_are_refused(ranges: Any) -> None:
    with pytest.raises(InvalidValue, match="a rectangle has a pair of finite numbers"):
        Ranges(ranges)


def test_the_private_stage_holds_what_the_plan_says() -> None:
    """Thirty million records, in as many boxes and cells as there can be."""
    plan = RANGES.plan(Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20), Ranges(), Budget(1.0, 1e-6), ADD, bytes(16))
    assert plan.held.counts == MOST_CELLS
    halve, rough, count = plan.rounds
    boxes, numbers = halve.release(evenly(halve.layout.number), None, SeededNoise(0)), []
    cells = rough.release(evenly(len(boxes)), boxes, SeededNoise(1))
    for step, state, size in (
        (halve, None, halve.layout.number),
        (rough, boxes, len(boxes)),
        (count, cells, int(cells.starts[-1])),
    ):
        assert size <= step.most_counts <= MOST_CELLS
        counts = evenly(size)
        tracemalloc.start()
        step.release(counts, state, SeededNoise(2))
        numbers.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert max(numbers) < 150
    assert cells.starts[-1] > MOST_CELLS // 2, "few cells"


def evenly(size: int) -> CellCounts:
    """Return as many counts, of thirty million records."""
    return CellCounts(size, None, np.full(size, 30_000_000 // size))


def failures_of_bounds(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[float]:
    """Return the list in which the failure probability of each bound that a module makes will be."""
    parts: list[float] = []

    def bound(noise: float, scale: float, failure: float) -> float:
        parts.append(failure)
        return largest_one(noise, scale, failure)

    monkeypatch.setattr(module, "largest_one", bound)
    return parts


def test_the_ends_of_all_rectangles_fail_together_as_rarely_as_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = failures_of_bounds(monkeypatch, core.ranges.found)
    released(plan_for("tree", some_rectangles(PLANE, 5), failure=0.3), clumped(1000)).result(PLANE)
    assert len(parts) == 10 and sum(parts) == pytest.approx(0.3)


def test_as_many_cells_as_there_can_be_fail_together_as_rarely_as_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = failures_of_bounds(monkeypatch, core.ranges.methods)
    wide = Grid((0.0, 0.0), (2047.0, 2047.0), 1.0)
    most = plan_for("tree", grid=wide, failure=0.3).rounds[-1].most_counts
    assert parts and most * max(parts) == pytest.approx(0.3)


@pytest.mark.parametrize("scales", [(10.0, 1.0), (1.0, 10.0)], ids=["box", "cell"])
def test_the_bound_of_a_whole_box_covers_the_noisier_of_box_and_cells(scales: tuple[float, float]) -> None:
    """What the box's own noise, or that of its first cell, exceeds alone where the rest is not below 0."""
    box, cell = scales
    parts, failure = (10, 10) if box > cell else (1, 1), 1e-6
    boxes = Boxes.of(Equal.of((10, 10), 1), np.arange(2))
    zeros = np.zeros(parts[0] * parts[1], np.int64)
    asked = Asked((((0.0, 9.0), (0.0, 9.0)),), failure)
    found = CountedCells(Cells(boxes, np.array([parts])), np.zeros(1, np.int64), zeros, box, cell, asked)
    (whole,) = found.result(Grid((0.0, 0.0), (9.0, 9.0), 1.0)).ranges
    own = len(zeros) * variance(cell) / (len(zeros) * variance(cell) + variance(box))
    weight, scale = max((own, box), (1 - own, cell), key=lambda each: each[0] * each[1])
    beyond = math.floor((whole.high + 1) / weight)
    alone = math.exp(-(beyond + 1) / scale) / (1 + math.exp(-1 / scale)) / 2
    assert whole.low == 0 and 2 * alone <= failure / 2


@pytest.mark.parametrize("count", [-1000, 1000])
def test_both_bounds_of_a_whole_box_are_as_far_from_its_count_and_never_below_0(count: int) -> None:
    boxes, sides = Boxes.of(Equal.of((10, 10), 1), np.arange(2)), ((0.0, 9.0), (0.0, 9.0))
    one, noisy = Cells(boxes, np.ones((1, 2), np.int64)), np.array([count])
    found = CountedCells(one, noisy, noisy, 10.0, 10.0, Asked((sides,), 0.1))
    (whole,) = found.result(Grid((0.0, 0.0), (9.0, 9.0), 1.0)).ranges
    if count < 0:
        assert (whole.low, whole.high) == (0, 0)
    else:
        assert count - whole.low == whole.high - count >= 2 * whole.standard_error


@pytest.mark.parametrize(("last", "cells"), [(1, 4), (29, 900), (1 << 12, MOST_CELLS)])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_promised_of_cells_is_that_of_their_own_noise(method: str, last: int, cells: int) -> None:
    """In a small domain there are no more cells than points."""
    plan = plan_for(method, grid=Grid((0.0, 0.0), (last, last), 1.0), failure=0.3)
    own = variance(plan.rounds[-1].cells.scale)
    assert plan.promises["standard_error"] == pytest.approx(math.sqrt(own))
    bound = largest_one(own, plan.rounds[-1].cells.scale, 0.3 / cells)
    assert bound <= plan.promises["cell_error"] < bound + 1
