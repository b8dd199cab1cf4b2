"""Looks at a wide domain: every score is what it is if all points are counted, and few counts are held."""

import tracemalloc
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import core.focus
from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.focus import CELLS, Focus, Focused
from core.gaps import Order
from core.held import AT_WORK
from core.interior_point.params import InteriorPoint
from core.interior_point.task import INTERIOR_POINT
from core.mechanisms.exponential import Both, Exponential
from core.mechanisms.within_cell import WithinCell
from core.neighbors import Neighbors
from core.order_statistics import order_statistic, smooth_sensitivity
from core.quantiles.params import Median, Minimum, Quantiles
from core.quantiles.task import MEDIAN, MINIMUM, QUANTILES
from core.quantiles.wide import SearchCells, SearchInSections
from core.rounds import Block, sections_of, total_in_memory
from core.statistics.quantities import Change
from core.statistics.ranks import Sought
from core.stored import Stored
from core.task import Task
from tests.core.seeded import SeededNoise

ASKED: dict[str, tuple[Task[Any], Any]] = {
    "median": (MEDIAN, Median(method="exponential")),
    "upper tail": (MEDIAN, Median(0.97, method="exponential")),
    "minimum": (MINIMUM, Minimum(method="exponential")),
    "maximum": (MINIMUM, Minimum(largest=True, method="exponential")),
    "one quantile": (QUANTILES, Quantiles((0.2,), "recursive")),
    "smooth": (MEDIAN, Median(0.3, method="smooth")),
    "smooth minimum": (MINIMUM, Minimum(method="smooth")),
    "interior point": (INTERIOR_POINT, InteriorPoint(method="exponential")),
}

RELATIONS = ("add_or_remove_one", "replace_one")


def the_round(asked: str, size: int, relation: str = "add_or_remove_one", epsilon: float = 1.0) -> Any:
    task, params = ASKED[asked]
    grid, neighbors = Grid((0,), (size - 1,), 1), Neighbors(relation)
    (step,) = task.plan(grid, params, Budget(epsilon, 0.0), neighbors, bytes(16)).rounds
    return step


def blocks(points: Any) -> list[Block]:
    points = np.asarray(points, dtype=np.int64)
    ids = np.arange(len(points), dtype=np.uint64)
    return [Block(points[part, None], ids[part]) for part in np.array_split(np.arange(len(points)), 3)]


def shapes(size: int, rng: np.random.Generator) -> dict[str, Any]:
    """Records that fall into few cells, into many, on edges, and nowhere."""
    return {
        "nothing": [],
        "one record": [size // 3],
        "one value": np.full(300, size // 3),
        "spread": rng.integers(0, size, 400),
        "a clump": size // 3 + rng.integers(0, 40, 400),
        "two clumps": np.where(rng.random(400) < 0.5, 3, size - 50) + rng.integers(0, 40, 400),
        "mostly zeros": np.where(rng.random(400) < 0.92, 0, rng.integers(0, size, 400)),
        "ends": rng.choice([0, size - 1], 400),
        "halves": np.where(rng.random(400) < 0.5, size // 2 - 1, size // 2),
        "a gap below the rank": np.r_[rng.integers(size // 5, size // 4, 117), np.full(283, size - 1000)],
    }


Asked = list[tuple[int, Any]]
"""First point of each universe that was chosen from, and the scores of all its points."""


@pytest.fixture
def asked_points(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Keep what every exponential mechanism is asked; the first point wins."""
    found: Asked = []

    def point(self: Any, starts: Any, lengths: Any, scores: Any, noise: Any, unit: float = 1.0) -> int:
        order = np.argsort(starts)
        found.append((int(starts[order[0]]), np.repeat(scores[order], lengths[order])))
        return int(starts[order[0]])

    def of_both(self: Both) -> tuple[int, int]:
        order = np.argsort(self.starts)
        scores = np.repeat(self.scores[order], self.lengths[order])
        found.append((int(self.starts[order[0]]), np.concatenate([scores, self.others])))
        return int(self.starts[order[0]]), 0

    monkeypatch.setattr(Exponential, "point", point)
    monkeypatch.setattr(Both, "__call__", of_both)
    return found


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Domains of more than 32 points are wide."""
    monkeypatch.setattr(core.focus, "CELLS", 32)
    for module in ("quantiles.exponential", "quantiles.cells_and_searches", "quantiles.recursive"):
        monkeypatch.setattr(f"core.{module}.CELLS", 32)
    for name in ("CELLS", "HELD"):
        monkeypatch.setattr(f"core.quantiles.wide.{name}", 32)
    monkeypatch.setattr("core.interior_point.exponential.CELLS", 32)


def both(step: Any, points: Any) -> tuple[Counts, Counts]:
    """Return what a release gets after looks, and the counts of all points."""
    data = blocks(points)
    full = sum((step.summarize(each, None) for each in data[1:]), step.summarize(data[0], None))
    return total_in_memory(step, data, None), full


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("asked", [name for name in ASKED if "smooth" not in name])
def test_scores_are_those_of_all_points(narrow: None, asked_points: Asked, asked: str, relation: str) -> None:
    """Of every point, in every choice."""
    size, fewer = 5000, 0
    step = the_round(asked, size, relation, epsilon=40.0)
    assert step.looks >= 2
    for name, points in shapes(size, np.random.default_rng(3)).items():
        looked, full = both(step, points)
        step.release(looked, None, SeededNoise(0))
        ours = [*asked_points]
        asked_points.clear()
        step.release(full, None, SeededNoise(0))
        assert len(ours) == len(asked_points) == sum(draw.times for draw in step.draws())
        for (first, scores), (other, others) in zip(ours, asked_points, strict=True):
            assert first == other and (scores == others).all(), name
            assert len(scores) >= size
        asked_points.clear()
        fewer += len(looked.keys) < len(full.keys)
    assert fewer, "no look left anything out"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("asked", [name for name in ASKED if "smooth" in name])
def test_smooth_noise_is_that_of_all_points(narrow: None, asked: str, relation: str) -> None:
    """The value without noise, and the scale of the noise."""
    fewer, step = 0, the_round(asked, 5000, relation, epsilon=20.0)
    for name, points in shapes(5000, np.random.default_rng(3)).items():
        looked, full = both(step, points)
        released = [step.release(each, None, SeededNoise(1)) for each in (looked, full)]
        assert released[0] == released[1], name
        values = [order_statistic(each, 4999, step.rank) for each in (looked, full)]
        beta, relations = step.smooth.noise.beta, step.neighbors
        bounds = [smooth_sensitivity(each, 4999, step.rank, beta, relations) for each in (looked, full)]
        assert values[0] == values[1] and bounds[0] == bounds[1], name
        fewer += len(looked.keys) < len(full.keys)
    assert fewer, "no look left anything out"


def equal(one: Any, other: Any) -> bool:
    """Say whether two states are equal."""
    if not is_dataclass(one):
        return bool(one == other)
    return all(np.array_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


@pytest.fixture
def asked_cells(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Keep what every choice in a cell is asked; the first of the best points wins."""
    found: Asked = []

    def points(
        self: Any, starts: Any, lengths: Any, scores: Any, parts: float, noise: Any, unit: float
    ) -> list[int]:
        order, best = np.argsort(starts), []
        for each in scores:
            found.append((int(starts[order[0]]), np.repeat(each[order], lengths[order])))
            best.append(int(starts[order][np.argmax(each[order])]))
        return best

    def of_both(self: Both) -> tuple[int, int]:
        order = np.argsort(self.starts)
        found.append((int(self.starts[order[0]]), np.repeat(self.scores[order], self.lengths[order])))
        found.append((0, self.others))
        return int(self.starts[order][np.argmax(self.scores[order])]), int(np.argmax(self.others))

    monkeypatch.setattr(WithinCell, "points", points)
    monkeypatch.setattr(Both, "__call__", of_both)
    return found


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [2, 9, 30])
@pytest.mark.parametrize("size", [5000, 1 << 16])
def test_stages_of_quantiles_are_those_of_all_points(
    narrow: None, asked_cells: Asked, size: int, count: int, relation: str
) -> None:
    """Every state, and in every choice of a cell the score of every point; trees and splits draw the same."""
    probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
    grid, budget, neighbors = Grid((0,), (size - 1,), 1), Budget(40.0, 0.0), Neighbors(relation)
    rounds = QUANTILES.plan(grid, Quantiles(probabilities, "recursive"), budget, neighbors, bytes(16)).rounds
    assert len(rounds) == (4 if relation == "add_or_remove_one" else 3)
    fewer = 0
    for name, points in shapes(size, np.random.default_rng(3)).items():
        for factor in (1.0, 20.0):  # much noise makes splits go astray, and searches by trees
            data, state = blocks(points), None
            for number, step in enumerate(rounds):
                looked = total_in_memory(step, data, state)
                after = step.release(looked, state, SeededNoise(number, factor))
                ours = [*asked_cells]
                asked_cells.clear()
                full = step.summarize(Block(np.array(points, dtype=np.int64)[:, None], np.zeros(0)), state)
                expected = step.release(full, state, SeededNoise(number, factor))
                assert equal(after, expected), f"{name}: {step.name}"
                for (first, scores), (other, others) in zip(ours, asked_cells, strict=True):
                    assert first == other and (scores == others).all(), name
                asked_cells.clear()
                if isinstance(step, Focused):
                    fewer += len(looked.keys) < len(full.keys)
                state = after
    assert fewer, "no look left anything out"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [2, 9, 30])
@pytest.mark.parametrize("most", [32, 150, 10**6])
def test_searches_of_few_cells_at_a_time_are_those_of_all_points(
    narrow: None, asked_cells: Asked, monkeypatch: pytest.MonkeyPatch, most: int, count: int, relation: str
) -> None:
    """In sections: of every state the same answer, and in every choice of a cell the score of every point."""
    probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
    grid, budget, neighbors = Grid((0,), (49_999,), 1), Budget(40.0, 0.0), Neighbors(relation)
    monkeypatch.setattr("core.quantiles.wide._MOST", 0)
    rounds = QUANTILES.plan(grid, Quantiles(probabilities, "recursive"), budget, neighbors, bytes(16)).rounds
    step = rounds[-1]
    assert isinstance(step, SearchInSections) and sections_of(step) > 1
    held: list[int] = []
    of_parts = SimpleNamespace(of_counts=Order.of_counts)  # which are read one by one, for trees
    monkeypatch.setattr("core.counted_points.Order", of_parts)
    monkeypatch.setattr("core.quantiles.wide.Order.of_counts", watched(Order.of_counts, held))
    for name, points in shapes(50_000, np.random.default_rng(3)).items():
        for factor in (1.0, 20.0):
            data, state = blocks(points), None
            for number, before in enumerate(rounds[:-1]):
                total = total_in_memory(before, data, state)
                state = before.release(total, state, SeededNoise(number, factor))
            full = Counts.of(np.sort(np.asarray(points, dtype=np.int64)))
            asked_cells.clear()
            expected = SearchCells(step.whole).release(full, state, SeededNoise(9, factor))
            ours = [*asked_cells]
            asked_cells.clear()
            held.clear()
            monkeypatch.setattr("core.quantiles.wide.HELD", most)
            stored = total_in_memory(step, data, state, SeededNoise(0))
            assert isinstance(stored, Stored) and len(stored.parts) == sections_of(step)
            assert equal(step.release(stored, state, SeededNoise(9, factor)), expected), name
            for (first, scores), (other, others) in zip(asked_cells, ours, strict=True):
                assert first == other and (scores == others).all(), name
            assert len(held) <= count and (most < 10**6 or len(held) == 1)
            monkeypatch.setattr("core.quantiles.wide.HELD", 32)


def watched(real: Any, sizes: list[int]) -> Any:
    """Return the function, which says how many counts it was given."""

    def of_counts(counts: Counts) -> Order:
        sizes.append(len(counts))
        return real(counts)

    return of_counts


@pytest.mark.parametrize(("epsilon", "count", "most"), [(1.0, 999, 3 * CELLS // 4), (0.1, 99, 5.2e6)])
def test_many_quantiles_or_a_small_epsilon_need_few_counts(epsilon: float, count: int, most: float) -> None:
    """By looks, 57 and 55 million counts might be held."""
    probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
    asked, neighbors = Quantiles(probabilities, "recursive"), Neighbors("add_or_remove_one")
    grid = Grid((0,), (2**31 - 1,), 1)
    plan = QUANTILES.plan(grid, asked, Budget(epsilon, 0.0), neighbors, bytes(16))
    *_, search = plan.rounds
    assert isinstance(search, SearchInSections) and SearchCells(search.whole).most_counts > 5e7
    assert search.most_counts <= most


def in_parts(points: Any, parts: int) -> Stored:
    """Return stored counts whose parts have no point in common."""
    counts = Counts.of(np.sort(np.asarray(points, dtype=np.int64)))
    cut = [counts.keys % parts == part for part in range(parts)]
    some = [Counts(counts.keys[here], counts.counts[here]) for here in cut]
    return Stored(tuple(some), tuple(map(len, some)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("count", [2, 9])
def test_ranks_of_a_group_do_not_depend_on_whether_its_values_are_held(
    narrow: None, asked_cells: Asked, monkeypatch: pytest.MonkeyPatch, count: int, fixed: bool
) -> None:
    """Of a domain that is halved as a larger one: released ranks, and the score of every point."""
    names = tuple(f"quantile {i}" for i in range(count))
    sought = Sought(0, names, tuple((i + 1) / (count + 1) for i in range(count)))
    change = Change(1, 1, 2, True, 0) if fixed else Change(2, 1, 1, False, 0)
    made = sought.paid(40.0, 0.1, Grid((0,), (4999,), 1), change, 0 if fixed else 8, False)
    assert len(made.rounds) == (3 if fixed else 4)
    for name, points in shapes(5000, np.random.default_rng(3)).items():
        for factor in (1.0, 20.0):
            monkeypatch.setattr("core.statistics.ranks.HELD", 10**6)
            held = made.release(in_parts(points, 1), SeededNoise(0, factor))
            expected = [*asked_cells]
            asked_cells.clear()
            monkeypatch.setattr("core.statistics.ranks.HELD", -1)
            passed = made.release(in_parts(points, 7), SeededNoise(0, factor))
            assert (held == passed).all(), name
            for (first, scores), (other, others) in zip(asked_cells, expected, strict=True):
                assert first == other and (scores == others).all(), name
            asked_cells.clear()


@pytest.mark.parametrize("end", [0.0, 0.5, 1.0])
def test_a_rank_of_a_group_does_not_depend_on_whether_its_values_are_held(
    narrow: None, asked_points: Asked, monkeypatch: pytest.MonkeyPatch, end: float
) -> None:
    """An extreme, or a quantile alone: the score of every point."""
    made = Sought(0, ("one",), (end,)).paid(
        40.0, 0.1, Grid((0,), (4999,), 1), Change(2, 1, 1, False, 0), 8, False
    )
    for name, points in shapes(5000, np.random.default_rng(3)).items():
        monkeypatch.setattr("core.statistics.ranks.HELD", 10**6)
        held = made.release(in_parts(points, 1), SeededNoise(0))
        expected = [*asked_points]
        asked_points.clear()
        monkeypatch.setattr("core.statistics.ranks.HELD", -1)
        assert (made.release(in_parts(points, 7), SeededNoise(0)) == held).all(), name
        for (first, scores), (other, others) in zip(asked_points, expected, strict=True):
            assert first == other and (scores == others).all(), name
        asked_points.clear()


@pytest.mark.parametrize("count", [1, 4, 99])
def test_few_counts_are_held_for_quantiles(count: int) -> None:
    """A million and a half distinct values: spread, in one cell of the first look, and in two."""
    probabilities = tuple(i / (count + 1) for i in range(1, count + 1))
    n, size, rng = 3 * CELLS // 2, 1 << 31, np.random.default_rng(0)
    asked = Quantiles(probabilities, "recursive")
    neighbors = Neighbors("add_or_remove_one")
    plan = QUANTILES.plan(Grid((0,), (size - 1,), 1), asked, Budget(1.0, 0.0), neighbors, bytes(16))
    half = np.arange(n) < n // 2
    for points in (
        rng.integers(0, size, n),
        size // 3 + np.arange(n),
        np.where(half, 5, size - 2 * n) + np.arange(n),
    ):
        data, state = [Block(np.sort(points)[:, None], np.arange(n, dtype=np.uint64))], plan.start
        for number, step in enumerate(plan.rounds):
            focused, passes = isinstance(step, Focused), getattr(step, "looks", 0)
            now = step.coarse(state) if focused else step
            for look in range(passes + 1):
                counted = now.summarize(data[0], state)
                assert not focused or len(counted.keys) <= min(CELLS, step.most_counts)
                if look < passes:
                    now = now.finer(counted, state)
            state = step.release(counted, state, SeededNoise(number))


@pytest.mark.parametrize("size", [CELLS, CELLS + 1, 1 << 31, 1 << 40, 1 << 62])
@pytest.mark.parametrize("asked", [name for name in ASKED if "smooth" not in name])
def test_looks_follow_from_the_domain(asked: str, size: int) -> None:
    """About 18 bits of the domain a look; none where all points can be counted."""
    step = the_round(asked, size)
    expected = {CELLS: (0,), CELLS + 1: (1,), 1 << 31: (1,), 1 << 40: (2,), 1 << 62: (3,)}
    assert step.looks in expected[size]
    if size == CELLS:
        assert step.most_counts == size
        assert all(getattr(each, "far", None) is None for each in (getattr(step, "aim", step),))


@pytest.mark.parametrize(
    ("asked", "size"),
    [("median", 1 << 31), ("minimum", 1 << 45), ("interior point", 1 << 62), ("smooth", 1 << 31)],
)
def test_few_counts_are_held_whatever_the_data(asked: str, size: int) -> None:
    """A million and a half distinct values: spread, in one cell of the first look, and in two."""
    n, rng = 3 * CELLS // 2, np.random.default_rng(0)
    step = the_round(asked, size)
    half = np.arange(n) < n // 2
    for points in (
        rng.integers(0, size, n),
        size // 3 + np.arange(n),
        np.where(half, 5, size - 2 * n) + np.arange(n),
    ):
        step_now, data = step.coarse(None), [Block(points[:, None], np.arange(n, dtype=np.uint64))]
        for look in range(step.looks + 1):
            counts = step_now.summarize(data[0], None)
            assert len(counts.keys) <= step.most_counts <= 1.01 * CELLS
            tracemalloc.start()
            if look < step.looks:
                step_now = step_now.finer(counts, None)
            else:
                step.release(counts, None, SeededNoise(0))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 150 * step.most_counts


def test_the_plan_says_what_the_private_stage_holds() -> None:
    task, params = ASKED["median"]
    plan = task.plan(
        Grid((0.0,), (2.0**31 - 1,), 1.0), params, Budget(1.0, 0.0), Neighbors("replace_one"), bytes(16)
    )
    assert plan.held.counts == plan.rounds[0].most_counts >= CELLS
    assert plan.held.bytes == AT_WORK * plan.held.counts


def test_cells_of_a_focus_are_cut_and_merged() -> None:
    focus = Focus(np.array([0, 100]), np.array([10]))
    counts = focus.count(np.array([5, 5, 31, 38, 77, 99]))
    assert counts.keys.tolist() == [0, 30, 70, 90] and counts.counts.tolist() == [2, 2, 1, 1]

    def third(runs: Any, total: int) -> Any:
        assert total == 6
        assert runs.below.tolist() == [0, 2, 4, 5] and runs.upto.tolist() == [2, 4, 5, 6]
        return runs.below == 2

    finer = focus.finer(counts, third, 4)
    assert finer.edges.tolist() == [0, 30, 40, 100] and finer.widths.tolist() == [30, 3, 60]
    kept = focus.finer(counts, third, 4, merging=False)
    assert kept.edges.tolist() == [0, 30, 40, 100] and kept.widths.tolist() == [10, 3, 10]
    again = finer.count(np.array([5, 31, 33, 39, 77, 99]))
    assert again.keys.tolist() == [0, 30, 33, 39, 40] and again.counts.tolist() == [1, 1, 1, 1, 2]


def test_a_round_without_a_focus_counts_every_point() -> None:
    step = the_round("median", 1 << 31)
    assert isinstance(step, Focused) and step.focus is None
    points = [7, 7, 1 << 30]
    assert step.summarize(blocks(points)[0], None).keys.tolist() == [7]
    with pytest.raises(ValueError, match="coarse"):
        step.finer(step.summarize(blocks(points)[0], None), None)


def test_what_a_look_finds_is_in_no_plan() -> None:
    """A focus is secret: no text of a round shows it."""
    step = the_round("median", 1 << 31)
    held = step.coarse(None).finer(step.coarse(None).summarize(blocks(range(900))[0], None), None)
    assert held.focus is not None and repr(held) == repr(step)


@pytest.mark.parametrize(("bits", "ranks"), [(21, 1), (31, 1), (31, 27), (62, 1), (62, 3), (62, 27)])
def test_the_last_look_leads_to_single_points(bits: int, ranks: int) -> None:
    class Any_(Focused):
        points, near = 1 << bits, (10,) * ranks

        def hot(self, runs: Any, total: int, state: Any) -> Any:
            return np.ones(len(runs.below), dtype=bool)

    step: Any = Any_().coarse(None)
    for _ in range(Any_().looks):
        step = step.finer(step.summarize(Block(np.array([[12345]]), np.zeros(1, np.uint64)), None), None)
    assert step.focus.count(np.array([12345])).keys.tolist() == [12345]
