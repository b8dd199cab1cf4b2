"""One quantile of several columns: the rounds of the columns alone, in the same passes, with one budget."""

import math
from typing import Any

import numpy as np
import pytest

import core.focus
import core.quantiles.exponential
from core.budget import Budget
from core.domain import Grid
from core.errors import InvalidValue
from core.mechanisms.exponential import Exponential
from core.neighbors import Neighbors
from core.policy import Attribute, Distance, DistancePerAxis, Partition, Policy
from core.quantiles.columns import FocusedColumns, SearchedColumns
from core.quantiles.params import Median, Minimum
from core.quantiles.task import MEDIAN, MINIMUM
from core.rounds import Block, run_in_memory, total_in_memory
from tests.core.seeded import SeededNoise

ADD, REPLACE = Neighbors("add_or_remove_one"), Neighbors("replace_one")
BOX = Grid((0.0, -5.0, 10.0), (4095.0, 250.0, 90.0), 1.0)
PURE = Budget(1.0, 0.0)
SHAPES = ("spread", "clumps", "equal", "few", "none")


def the_plan(
    params: Median | Minimum | None = None,
    grid: Grid = BOX,
    budget: Budget = PURE,
    neighbors: Neighbors = ADD,
) -> Any:
    params = params or Median(method="exponential")
    task: Any = MEDIAN if isinstance(params, Median) else MINIMUM
    return task.plan(grid, params, budget, neighbors, bytes(16))


def records(shape: str, grid: Grid, seed: int = 0, n: int = 500) -> np.ndarray:
    rng, extents = np.random.default_rng(seed), np.asarray(grid.extents)
    n = {"few": 3, "none": 0}.get(shape, n)
    if shape == "equal":
        return np.tile(extents // 3, (n, 1))
    if shape == "clumps":
        side = rng.random((n, 1)) < 0.6
        return np.minimum(np.where(side, 2, extents - 30) + rng.integers(0, 30, (n, len(extents))), extents)
    return rng.integers(0, extents + 1, (n, len(extents)))


def blocks(points: np.ndarray) -> list[Block]:
    ids = np.arange(len(points), dtype=np.uint64)
    return [Block(points[part], ids[part]) for part in np.array_split(np.arange(len(points)), 3)]


PARAMS = (
    Median(method="exponential"),
    Median(0.9, method="exponential", interval_share=0.0),
    Minimum(method="exponential"),
    Minimum(largest=True, method="smooth"),
    Median(method="smooth", scale_share=0.2),
)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("params", PARAMS, ids=str)
def test_each_value_is_that_of_the_column_alone(params: Any, neighbors: Neighbors) -> None:
    """The same noise gives the same answer as the column's round on the column."""
    (step,) = the_plan(params, neighbors=neighbors).rounds
    assert isinstance(step, FocusedColumns) and len(step.columns) == 3
    for shape in SHAPES:
        points, noise, again = records(shape, BOX), SeededNoise(1), SeededNoise(1)
        found = step.release(total_in_memory(step, blocks(points), None), None, noise)
        for axis, column in enumerate(step.columns):
            alone = blocks(points[:, [axis]])
            assert found.columns[axis] == column.release(total_in_memory(column, alone, None), None, again)


@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
@pytest.mark.parametrize("params", PARAMS, ids=str)
def test_looks_change_no_answer(monkeypatch: pytest.MonkeyPatch, params: Any, neighbors: Neighbors) -> None:
    """Of 64 points all are counted; here a column of 5,000 points is beside one of 40.

    Choices are asked the same scores of all points, and smooth noise is the same.
    """
    asked: list[tuple[int, list[int]]] = []

    def point(self: Any, starts: Any, lengths: Any, scores: Any, noise: Any, unit: float = 1.0) -> int:
        order = np.argsort(starts)
        asked.append((int(starts[order[0]]), np.repeat(scores[order], lengths[order]).tolist()))
        return int(starts[order[0]])

    monkeypatch.setattr(Exponential, "point", point)
    monkeypatch.setattr(core.focus, "CELLS", 64)
    monkeypatch.setattr(core.quantiles.exponential, "CELLS", 64)
    grid = Grid((0.0, 0.0, 0.0), (4999.0, 39.0, 700.0), 1.0)
    (step,) = the_plan(params, grid, Budget(60.0, 0.0), neighbors).rounds
    assert step.looks >= 1
    fewer = 0
    for shape in SHAPES:
        data = blocks(records(shape, grid))
        full = sum((step.summarize(each, None) for each in data[1:]), step.summarize(data[0], None))
        looked = total_in_memory(step, data, None)
        fewer += len(looked) < len(full)
        ours, theirs = (step.release(each, None, SeededNoise(0)) for each in (looked, full))
        half = len(asked) // 2
        assert ours == theirs and asked[:half] == asked[half:], shape
        asked.clear()
    assert fewer, "no look left anything out"


def test_few_counts_are_held_in_wide_columns() -> None:
    """Three columns of 2^40 points: a million records, and never more than about a million counts."""
    grid = Grid((0,) * 3, (2**40,) * 3, 1)
    (step,) = the_plan(grid=grid).rounds
    points = records("spread", grid, n=1 << 19)
    now, data = step.coarse(None), Block(points, np.arange(len(points), dtype=np.uint64))
    for look in range(step.looks + 1):
        counts = now.summarize(data, None)
        assert len(counts) <= step.most_counts <= 1.02 * core.focus.CELLS
        now = now.finer(counts, None) if look < step.looks else now
    found = step.release(counts, None, SeededNoise(0))
    for axis, column in enumerate(found.columns):
        below = (points[:, axis] < column.step).sum()
        assert abs(below - len(points) / 2) <= found.errors[axis].rank_error


@pytest.mark.parametrize("budget", [PURE, Budget(0.3, 1e-6)], ids=["pure", "delta"])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
def test_columns_share_the_budget_such_that_all_have_one_error(budget: Budget, neighbors: Neighbors) -> None:
    plan = the_plan(budget=budget, neighbors=neighbors)
    assert 0.99 * budget.epsilon <= plan.spend.epsilon <= budget.epsilon
    errors = [each.rank_error for each in plan.rounds[0].errors]
    assert max(errors) - min(errors) <= 1 and plan.promises["rank_error"] == max(errors)
    half = Median(method="exponential", failure=0.1 / 3)
    alone = max(
        the_plan(half, Grid((low,), (high,), 1.0), budget, neighbors).promises["rank_error"]
        for low, high in zip(BOX.lower, BOX.upper, strict=True)
    )
    assert max(errors) < 3 * alone + 1  # an equal split would give this


def test_many_columns_compose_to_less_than_the_sum() -> None:
    """With delta the error of many columns hardly grows faster than the root of their number."""
    grid = Grid((0.0,) * 64, (1000.0,) * 64, 1.0)
    pure, approximate = (the_plan(grid=grid, budget=Budget(1.0, delta)) for delta in (0.0, 1e-6))
    assert approximate.promises["rank_error"] < 0.5 * pure.promises["rank_error"]


def off(points: np.ndarray, step: int, quantile: float) -> float:
    """Distance of a point's ranks from the wanted one."""
    below, upto, wanted = (points < step).sum(), (points <= step).sum(), quantile * len(points)
    return max(0.0, below - wanted, wanted - upto)


@pytest.mark.parametrize("shape", ["spread", "clumps", "equal"])
@pytest.mark.parametrize("neighbors", [ADD, REPLACE], ids=["add", "replace"])
def test_promises_and_intervals_hold_for_all_columns_at_once(shape: str, neighbors: Neighbors) -> None:
    """100 runs at failure 0.3: more than 30 + 4.6 * 4.5 broken ones have probability below 1e-5."""
    plan = the_plan(Median(failure=0.3, method="exponential"), neighbors=neighbors)
    points = records(shape, BOX, n=2000)
    broken = outside = 0
    for seed in range(100):
        found = run_in_memory(plan.rounds, blocks(points), plan.start, SeededNoise(seed))
        each = list(zip(points.T, found.columns, found.errors, strict=True))
        broken += any(off(column, value.step, 0.5) > error.rank_error for column, value, error in each)
        for column, value, _ in each:
            low, high = value.interval
            if (column < low).sum() > 1000 or (column <= high).sum() < 1000:
                outside += 1
                break
    assert broken <= 51 and outside <= 51


def test_the_result_has_an_entry_for_each_column_in_its_units() -> None:
    plan = the_plan(Median(method="exponential"))
    points = records("equal", BOX, n=5000)
    result = run_in_memory(plan.rounds, blocks(points), plan.start, SeededNoise(0)).result(BOX)
    assert [each.value for each in result.columns] == [1365.0, 80.0, 36.0]
    assert all(each.low <= each.value <= each.high for each in result.columns)
    assert {each.rank_error for each in result.columns} <= {
        plan.promises["rank_error"],
        plan.promises["rank_error"] - 1,
    }
    assert all(each.typical_rank_error <= plan.promises["typical_rank_error"] for each in result.columns)


@pytest.mark.parametrize(
    "secrets",
    [Distance(3), DistancePerAxis((2, 9, 4)), Partition((8, 16, 8))],
    ids=lambda s: type(s).__name__,
)
def test_near_policies_lower_the_error_of_every_column(secrets: Any) -> None:
    near = Neighbors("replace_one", Policy(secrets))
    plan, full = the_plan(Median(), neighbors=near), the_plan(Median(), neighbors=REPLACE)
    assert plan.method == "ordered" and isinstance(plan.rounds[0], SearchedColumns)
    assert plan.policy is not None
    assert plan.promises["rank_error"] < 0.8 * full.promises["rank_error"]
    points = records("spread", BOX, n=2000)
    broken = 0
    for seed in range(40):
        found = run_in_memory(plan.rounds, blocks(points), plan.start, SeededNoise(seed))
        each = zip(points.T, found.columns, found.errors, strict=True)
        broken += any(off(column, value.step, 0.5) > error.rank_error for column, value, error in each)
    assert broken <= 4 + 4.5 * math.sqrt(40 * 0.09)


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        (Attribute(), "needs a policy of distances or of a partition"),
        (DistancePerAxis((2, 0, 4)), "leave that column out"),
        (Partition((8, 1, 8)), "leave that column out"),
        (Distance(250), "reach less far than the domain"),
    ],
    ids=["attribute", "public column", "narrow parts", "far"],
)
def test_policies_that_ordered_does_not_serve(secrets: Any, said: str) -> None:
    near = Neighbors("replace_one", Policy(secrets))
    with pytest.raises(InvalidValue, match=said):
        the_plan(Median(method="ordered"), neighbors=near)
    plan = the_plan(Median(), neighbors=near)  # by another method, whose noise is that of full privacy
    assert plan.method == "exponential" and plan.policy is None
    assert plan.promises == the_plan(Median(), neighbors=REPLACE).promises


def test_too_many_points_are_refused() -> None:
    grid = Grid((0, 0), (2**62 - 2, 2**62 - 2), 1)
    with pytest.raises(InvalidValue, match=r"all columns together may have 2\^62 grid points"):
        the_plan(grid=grid)
    assert the_plan(grid=Grid((0, 0), (2**61 - 1, 2**61 - 1), 1)).rounds


def test_columns_share_the_failure_and_delta() -> None:
    """Two equal columns are promised what one is with half of both failure and epsilon."""
    one, two = Grid((0.0,), (99.0,), 1.0), Grid((0.0, 0.0), (99.0, 99.0), 1.0)
    both, alone = (Median(failure=each, method="exponential") for each in (0.1, 0.05))
    assert the_plan(both, two).promises == the_plan(alone, one, Budget(0.5, 0.0)).promises
    smooth = the_plan(Median(method="smooth", noise="laplace"), two, Budget(1.0, 1e-6))
    assert 0.5e-6 < sum(draw.delta for draw in smooth.mechanisms) <= 1e-6


@pytest.mark.parametrize(
    ("secrets", "each"),
    [
        (DistancePerAxis((2, 9)), (Distance(2), Distance(9))),
        (Partition((4, 16)), (Partition((4,)), Partition((16,)))),
    ],
    ids=["distances", "partition"],
)
def test_every_column_is_searched_under_its_own_part_of_the_policy(secrets: Any, each: Any) -> None:
    one, two = Grid((0.0,), (63.0,), 1.0), Grid((0.0, 0.0), (63.0, 63.0), 1.0)
    params = Median(method="ordered")
    both = the_plan(params, two, neighbors=Neighbors("replace_one", Policy(secrets))).rounds[0].columns
    for column, own in zip(both, each, strict=True):
        alone = the_plan(params, one, neighbors=Neighbors("replace_one", Policy(own))).rounds[0]
        changes = [[draw.change for draw in step.draws()] for step in (column, alone)]
        assert changes[0] == changes[1] != []


def test_noise_takes_no_value_beyond_the_domain() -> None:
    plan = the_plan(Median(method="smooth"), Grid((0.0,), (9.0,), 1.0), Budget(0.01, 0.0))
    points = blocks(np.full((5, 1), 4))
    steps = {run_in_memory(plan.rounds, points, plan.start, SeededNoise(seed)).step for seed in range(40)}
    assert (min(steps), max(steps)) == (0, 9)
