"""Values in sections are those of all rows, whichever groups are asked for, and however few are held."""

from typing import Any

import numpy as np
import pytest

from core.aggregate import Counts
from core.budget import Budget
from core.domain import Grid
from core.grouping import Contributions, Grouping
from core.neighbors import Neighbors
from core.rounds import Block, sections_of, total_in_memory
from core.statistics import stored_totals
from core.statistics.params import Statistics
from core.statistics.quantities import Quantity
from core.statistics.stored_totals import StoredTotals, TotalsInSections
from core.statistics.task import STATISTICS
from core.statistics.totals import GroupTotals
from core.statistics.values import ValueCounts
from core.stored import InMemory
from tests.core.seeded import SeededNoise

LABELS = np.array([f'["{name}"]'.encode() for name in ("b", "a", "longer", "c", "z")])


class Disk(InMemory):
    """A store that says what it was asked for."""

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}
        self.most = 0

    def put(self, piece: Any) -> int:
        self.kept[len(self.kept)] = piece
        return len(self.kept) - 1

    def get(self, kept: int) -> Any:
        return self.kept[kept]

    def another(self) -> "Disk":
        return Disk()


def rows(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return groups and points of rows; of one group there are most, and of the last none."""
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.7, 2, rng.integers(0, 4, n))
    return groups, np.stack([rng.integers(0, 1 << 20, n), rng.integers(0, 5, n)], axis=1)


def totals(labeled: bool, groups: np.ndarray, points: np.ndarray) -> GroupTotals:
    """Return the numbers of rows of groups, and the values of both axes."""
    found, place = np.unique(groups, return_inverse=True)
    numbers = np.bincount(place)[:, None]
    values = tuple(ValueCounts.of(place, points[:, axis]) for axis in range(2))
    if not labeled:
        return TotalsInSections(found, numbers, values)
    order = np.argsort(LABELS[found])
    moved = np.argsort(order)
    named = tuple(ValueCounts.merged([each], [moved]) for each in values)
    return TotalsInSections(LABELS[found][order], numbers[order], named)


@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("sections", [1, 2, 64])
@pytest.mark.parametrize("most", [1, 40, 300, 10**6])
def test_values_are_those_of_all_rows(
    monkeypatch: pytest.MonkeyPatch, labeled: bool, sections: int, most: int
) -> None:
    monkeypatch.setattr(stored_totals, "HELD", most)
    groups, points = rows(0)
    whole, parts = totals(labeled, groups, points), [slice(0, 100), slice(100, 101), slice(101, 600)]
    pieces = [totals(labeled, groups[part], points[part]).split(sections) for part in parts]
    merged = [TotalsInSections.merged(each) for each in zip(*pieces, strict=True)]
    assert len(merged) == sections and sum(len(each.values[0]) for each in merged) == len(whole.values[0])
    disk = Disk()
    stored = [StoredTotals.of(each, disk) for each in merged]
    total = stored[0]
    for each in stored[1:]:
        total = each + total
    assert total.whole() == whole and total == StoredTotals.of(whole)
    assert np.array_equal(total.totals.keys, whole.keys) and np.array_equal(total.totals.totals, whole.totals)
    every = LABELS if labeled else np.arange(5)
    nothing = Counts.of(np.zeros(0, dtype=np.int64))
    for keys in (every, every[::-1], every[[3]], every[[4, 2]], every[:0]):
        found = list(total.values(keys))
        assert len(found) == len(keys)
        for place, own in zip(whole.places(keys), found, strict=True):
            for axis, counts in enumerate(own):
                expected = whole.values[axis].at(int(place)) if place >= 0 else nothing
                assert counts.whole() == expected and len(counts) == len(expected)
                assert most > 300 or len(expected) <= most or len(counts.parts) >= min(2, sections)


WIDE = Grid((0.0,), (2.0**22,), 1.0)
GROUPED = {
    "whole": {},
    "private": {"grouping": Grouping(("city",), None, (None,))},
    "units": {"grouping": Grouping(("city",), None, (None,)), "contributions": Contributions(2, 3)},
}


@pytest.mark.parametrize("how", GROUPED)
def test_a_release_does_not_depend_on_sections(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise gives the same answers, whether values of several groups, or of one, are held."""
    asked = Statistics(("count", {"quantiles": (0.25, 0.5)}, "maximum"), **GROUPED[how])
    budget, neighbors = Budget(50.0, 1e-3), Neighbors("add_or_remove_one")
    (step,) = STATISTICS.plan(WIDE, asked, budget, neighbors, bytes(16)).rounds
    groups, points = rows(1)
    blocks = [
        Block(points[part, :1], np.arange(600, dtype=np.uint64)[part], None, groups[part], LABELS)
        for part in np.array_split(np.arange(600), 4)
    ]
    if how == "whole":
        blocks = [Block(each.points, each.ids) for each in blocks]
    assert sections_of(step) > 1

    def released() -> Any:
        total = total_in_memory(step, blocks, None, SeededNoise(0))
        return step.release(total, None, SeededNoise(0))

    first = released()
    assert first.steps.shape == (1 if how == "whole" else 4, 3, 3)
    monkeypatch.setattr(stored_totals, "HELD", 100)
    second = released()
    assert np.array_equal(first.steps, second.steps) and np.array_equal(first.totals, second.totals)


def test_few_possible_values_need_no_sections() -> None:
    budget, neighbors = Budget(1.0, 1e-6), Neighbors("add_or_remove_one")
    for grid, more, wanted in (
        (Grid((0.0,), (1000.0,), 1.0), {}, False),
        (WIDE, {}, True),
        (Grid((0.0,), (1000.0,), 1.0), GROUPED["private"], True),
    ):
        for measures in (("count",), ("count", "minimum")):
            plan = STATISTICS.plan(grid, Statistics(measures, **more), budget, neighbors, bytes(16))
            assert bool(sections_of(plan.rounds[0])) == (wanted and "minimum" in measures)


@pytest.mark.parametrize("many", ["values", "groups"])
def test_values_of_one_group_and_one_value_of_many_groups_are_in_sections_alike(many: str) -> None:
    """4,096 pairs in 16 sections: binomial, so more than 384 in one of them has a probability below 1e-12."""
    each, same = np.arange(4096), np.full(4096, 5)
    groups, points = (same * 0, each) if many == "values" else (each, same)
    keys = np.unique(groups)
    sections = TotalsInSections(keys, keys[:, None], (ValueCounts.of(groups, points),)).split(16)
    assert sum(len(section.values[0]) for section in sections) == 4096
    assert max(len(section.values[0]) for section in sections) <= 384


def test_a_unit_that_is_alone_in_each_of_its_groups_counts_in_each() -> None:
    block = Block(np.zeros((3, 1), np.int64), np.full(3, 7, np.uint64), groups=np.arange(3))
    asked = (Quantity("units"), Quantity("unit_sum", 0, 3, -1))
    assert GroupTotals.of(block, asked, labeled=False).totals.tolist() == [[1, 1]] * 3
