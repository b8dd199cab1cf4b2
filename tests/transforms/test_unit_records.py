"""The record of a unit is what its rows make it, exactly, on every grid."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from core.domain import Ball, Grid
from core.geography import RADIUS, Geography
from core.sampling import scramble
from transforms import row_races as races_module
from transforms.point_words import point_words
from transforms.row_races import _ROW, _race_of_copies
from transforms.unit_records import Keep, keep_one, kept_by
from transforms.unit_rows import UnitRows

SALT = b"a salt of 16 byt"


def rows_of(words: list[np.ndarray], of_unit: np.ndarray, ids: np.ndarray | None = None) -> UnitRows:
    """Return rows of units with these identities, by default their numbers. Some numbers are of no unit."""
    ids = of_unit.astype(np.uint64) if ids is None else ids
    return UnitRows(words, ids, 2 * of_unit + 1, 2 * int(of_unit.max()) + 5)


def unit_records(
    rows: UnitRows, grid: Grid, keep: Keep, salt: bytes, order: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the records of units and their identities."""
    return kept_by(keep, grid, salt, bool(order)).whole(rows.with_words([*rows.words, *order]))


def computed(points: np.ndarray, of_unit: np.ndarray, grid: Grid, keep: Keep) -> np.ndarray:
    """Return the records of units, shape (units, d), from the points of their rows."""
    return unit_records(rows_of(point_words(points, grid), of_unit), grid, keep, SALT)[0]


def exact_mean(points: np.ndarray) -> list[int]:
    """Round half up the mean of each column, with Python's integers."""
    return [math.floor(Fraction(sum(map(int, column)), len(points)) + Fraction(1, 2)) for column in points.T]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_axis_counts_for_what_is_kept(axes: int) -> None:
    """A unit's rows that differ in the last axis alone are different rows: 6 sigma, 2e-9."""
    n = 10_000
    points = np.zeros((2 * n, axes), dtype=np.int64)
    points[1::2, -1] = 1
    words = point_words(points, Grid((0.0,) * axes, (1.0,) * axes, 1.0))
    of_unit = np.repeat(np.arange(n), 2)
    kept = keep_one(rows_of(words, of_unit), SALT)
    assert (kept // 2 == np.arange(n)).all()
    assert abs((kept % 2).sum() - n / 2) < 6 * math.sqrt(n / 4)


def test_means_are_exact_on_the_largest_grids() -> None:
    """Sums of 70,000 coordinates of 62 bits are beyond int64, and of a billion of 31 bits near its end."""
    rng = np.random.default_rng(0)
    wide = Grid((0,), (2**62 - 1,), 1)
    assert wide.wide
    for grid, kind in ((wide, np.uint64), (Grid((0.0,), (2.0**31 - 1,), 1.0), np.uint32)):
        most = grid.extents[0]
        points = most - rng.integers(0, 1000, (70_000, 1)).astype(kind)
        of_unit = rng.integers(0, 3, 70_000)
        means = computed(points.astype(kind), of_unit, grid, "mean")
        assert means.tolist() == [exact_mean(points[of_unit == unit]) for unit in range(3)]
        last = computed(np.full((5, 1), most, dtype=kind), np.zeros(5, dtype=np.int64), grid, "mean")
        assert last.tolist() == [[most]]


@pytest.mark.parametrize("keep", ["mean", "min", "max"])
@pytest.mark.parametrize("most", [5, 2**40])
def test_what_is_computed_of_a_unit_is_of_each_column_of_its_own_rows(keep: Keep, most: int) -> None:
    """Means of two rows lie between two steps half of the time: they are rounded up."""
    rng = np.random.default_rng(0)
    grid = Grid((0.0, 0.0), (float(most), float(most)), 1.0)
    of_unit = np.r_[np.repeat(np.arange(500), 2), np.full(7, 500), 501]
    points = rng.integers(0, most + 1, (len(of_unit), 2))
    of = {"mean": exact_mean, "min": lambda own: own.min(axis=0), "max": lambda own: own.max(axis=0)}[keep]
    expected = [list(of(points[of_unit == unit])) for unit in range(502)]
    assert computed(points, of_unit, grid, keep).tolist() == expected


def test_a_unit_of_the_same_identity_changes_nothing() -> None:
    """Two units with one identity have equal rows: each keeps what it would keep alone."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.integers(0, 3, 40).astype(np.uint64)
        of_unit = np.r_[0, 1, rng.integers(0, 2, 38)]
        same = np.zeros(40, np.uint64)
        both = points[keep_one(rows_of([points], of_unit, same), SALT)]
        for unit in range(2):
            own = points[of_unit == unit]
            alone = keep_one(rows_of([own], np.zeros(len(own), np.int64), same[: len(own)]), SALT)
            assert both[unit] == own[alone[0]]


def test_rows_of_one_hash_are_kept_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row B may have the hash of a second copy of row A. Places decide nothing.

    Here the hash of a row is its point: that of A is 0.
    """
    monkeypatch.setattr(races_module, "keyed_blocks", lambda messages, *_: messages[:, 1:])
    other = scramble(np.array([1], dtype=np.uint64), SALT, _ROW)[0]
    rows, zeros = np.array([0, other, 0], dtype=np.uint64), np.zeros(3, np.int64)
    assert len(set(_race_of_copies(rows, [rows], zeros, SALT).tolist())) == 2
    kept = {
        int(rows[list(order)][keep_one(rows_of([rows[list(order)]], zeros), SALT)][0])
        for order in itertools.permutations(range(3))
    }
    assert len(kept) == 1


def test_of_equal_hashes_the_smallest_point_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    same = np.zeros((5, 2), np.uint64)
    monkeypatch.setattr(races_module, "keyed_blocks", lambda *_: same)
    monkeypatch.setattr(races_module, "repeated", lambda _: np.empty(0, np.intp))
    points, of_unit = np.array([4, 3, 9, 2, 7], dtype=np.uint64), np.array([0, 0, 1, 0, 1])
    for order in map(list, itertools.permutations(range(5))):
        kept = keep_one(rows_of([points[order]], of_unit[order]), SALT)
        assert points[order][kept].tolist() == [2, 7]


def exact_sum(values: np.ndarray, low: str, high: str, step: str) -> int:
    """Sum grid points of one unit in data units and round them to the grid, with Python's fractions."""
    lower, upper, distance = map(Fraction, (low, high, step))
    total = sum((lower + distance * int(k) for k in values), Fraction(0))
    steps = math.floor((total - lower) / distance + Fraction(1, 2))
    return max(0, min(steps, math.floor((upper - lower) / distance)))


DOMAINS = [
    ("0", "1000", "1"),
    ("-90", "90", "0.001"),
    ("0.3", "7.7", "0.2"),
    ("-5", "-1", "0.5"),
    ("-0.05", "100", "0.1"),
    ("-1e-3", "1e-3", "1e-9"),
]


@pytest.mark.parametrize(("low", "high", "step"), DOMAINS)
def test_sums_are_those_of_data_units_rounded_and_clamped(low: str, high: str, step: str) -> None:
    grid = Grid((float(low),), (float(high),), float(step))
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 17):
        points = rng.integers(0, grid.extents[0] + 1, (40 * size, 1)).astype(np.uint32)
        points[: 20 * size] //= np.uint32(1 + size)
        of_unit = np.arange(40 * size) % 40
        sums = computed(points, of_unit, grid, "sum")
        wanted = [exact_sum(points[of_unit == unit, 0], low, high, step) for unit in range(40)]
        assert sums[:, 0].tolist() == wanted
        if size == 1:
            assert sums.tolist() == points.tolist()


def test_sums_are_exact_where_int64_would_overflow() -> None:
    """A sum of 70,000 coordinates of 62 bits is clamped; one that negative values bring back is not."""
    top = 2**61
    grid = Grid((-top,), (top - 1,), 1)
    assert grid.wide
    values = np.r_[np.full(35_000, top - 1), np.full(35_000, -top), 123_456][:, None]
    points = (values + top).astype(np.uint64)
    one = np.zeros(len(points), np.int64)
    assert computed(points, one, grid, "sum")[0, 0] == 123_456 - 35_000 + top
    assert computed(points[:35_000], one[:35_000], grid, "sum")[0, 0] == 2 * top - 1
    assert computed(points[35_000:70_000], one[:35_000], grid, "sum")[0, 0] == 0


@pytest.mark.parametrize("keep", get_args(Keep))
def test_no_record_depends_on_the_order_of_rows_or_on_other_units(keep) -> None:
    axes = 1 if keep == "count" else 2
    grid = Grid((-1.0,) * axes, (1.0,) * axes, 2.0**-8)
    rng = np.random.default_rng(1)
    words = point_words(rng.integers(0, 513, (300, axes)), grid)
    of_unit, ids = (
        np.r_[np.arange(20), rng.integers(0, 20, 280)],
        rng.integers(0, 2**63, 20).astype(np.uint64),
    )
    times = list(rng.integers(0, 5, (2, 300)).astype(np.uint64))

    def kept(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = rows_of([word[some] for word in words], of_unit[some], ids[of_unit[some]])
        return unit_records(own, grid, keep, SALT, [word[some] for word in times])

    whole, whose = kept(np.arange(300))
    assert whole.dtype == np.uint32 and whole.shape == (20, axes)
    assert np.array_equal(whose, ids)
    assert np.array_equal(kept(rng.permutation(300))[0], whole)
    for unit in range(20):
        alone, its = kept(np.flatnonzero(of_unit == unit))
        assert np.array_equal(alone, whole[[unit]]) and its == ids[[unit]]


@pytest.mark.parametrize("keep", ["mean", "min", "max", "sum"])
def test_every_record_is_a_point_that_the_domain_has(keep) -> None:
    """Corners of the bounding box of points in a ball, and their sums, lie outside of the ball."""
    grid = Grid((-1.0, -1.0), (1.0, 1.0), 2.0**-6, Ball((0.0, 0.0), 0.75))
    angle = np.arange(0, 2 * np.pi, 0.1)
    points = grid.quantize(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    pairs = np.array(list(itertools.combinations(range(len(points)), 2)))
    of_unit = np.repeat(np.arange(len(pairs)), 2)
    kept, _ = unit_records(rows_of(point_words(points[pairs.ravel()], grid), of_unit), grid, keep, SALT)
    kept = kept.astype(np.int64)
    moved = np.linalg.norm(kept - np.array(grid.bounding_center), axis=1)
    assert moved.max() <= grid.bounding_radius
    assert ((kept >= 0) & (kept <= np.array(grid.extents))).all()


@pytest.mark.parametrize("low", [0, -(2**60) - 1])
def test_counts_are_exact_on_a_wide_grid(low: int) -> None:
    grid = Grid((low,), (2**61,), 1)
    of_unit = np.repeat([0, 1, 2], [5, 1, 100_000])
    zeros = np.zeros((len(of_unit), 1), dtype=np.int64)
    steps = computed(zeros, of_unit, grid, "count").astype(np.int64)
    assert (steps + low).tolist() == [[5], [1], [100_000]]


@pytest.mark.parametrize("bounds", [((-90, -180), (90, 180)), ((-22, 175), (-12, -175))])
def test_the_mean_of_places_is_a_place(bounds):
    """Places on both sides of the date line have their mean between them, on the Earth and on its grid."""
    grid = Grid.on_earth(Geography.of(*bounds, 1.0))
    rows = np.array([[-15, 178.0], [-15, -178.0], [-20, 177.0], [-20, 179.0], [-20, 178.0]])
    words, units = point_words(grid.quantize(rows), grid), np.array([0, 0, 1, 1, 1])
    means = unit_records(rows_of(words, units), grid, "mean", SALT)[0].astype(np.int64)
    (first, second) = grid.restore(means).tolist()
    assert first == pytest.approx([-15.0, -180], abs=0.05) or first == pytest.approx([-15.0, 180], abs=0.05)
    assert second == pytest.approx([-20.0, 178.0], abs=0.02)
    if grid.dimension == 3:
        away = np.linalg.norm(means + np.asarray(grid.lower), axis=1)
        assert np.abs(away - RADIUS).max() < 1
