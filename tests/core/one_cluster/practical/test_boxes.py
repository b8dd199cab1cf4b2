import numpy as np
import pytest

from core.aggregate import Counts
from core.domain import Grid
from core.one_cluster.practical.boxes import Boxes
from tests.core.one_cluster.practical.steps import crowded

DIMENSIONS = [1, 7, 40]  # a line, and two grids that the boxes cover in a projection


def boxes(d, step=2.0**-16):
    return Boxes(Grid((0.0,) * d, (1.0,) * d, step))


def points(family, n=200, seed=0):
    extents = np.asarray(family.grid.extents)
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 2, (n, len(extents))) * extents
    return np.concatenate([rng.integers(0, extents + 1, (n, len(extents))), corners])


@pytest.mark.parametrize("d", DIMENSIONS)
def test_key_names_the_box_that_holds_the_point(d):
    family = boxes(d)
    where = family.coordinates(points(family))
    offsets = family.offsets(fine=True)
    assert where.min() >= 0
    assert where.max() <= family.extent
    for level in (family.bottom, (family.bottom + family.top) // 2, family.top):
        keys = family.keys(where, level, fine=True)
        assert (keys >= 0).all()
        assert family.of_level(keys, level).all()
        for number in range(len(offsets)):
            for i in (0, 57, 211):
                inside = where[i] - family.corner(int(keys[number, i]), level)
                assert ((inside >= 0) & (inside < 1 << level)).all()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_different_boxes_have_different_keys(d):
    """No collisions: else one record could be counted twice in one key."""
    family = boxes(d)
    where = family.coordinates(points(family))
    offsets = family.offsets(fine=True)
    for level in family.levels:
        keys = family.keys(where, level, fine=True)
        assert len({number for number in range(len(keys))}) == len({tuple(row) for row in keys}) or d == 1
        indices = (where + np.floor(offsets[3] * (1 << level)).astype(np.int64)) >> level
        assert len(np.unique(indices, axis=0)) == len(np.unique(keys[3]))
        assert len(np.intersect1d(keys[0], keys[1])) == 0


@pytest.mark.parametrize("d", DIMENSIONS)
def test_top_box_holds_everything(d):
    family = boxes(d)
    keys = family.keys(family.coordinates(points(family)), family.top, fine=False)
    assert len(np.unique(keys[0])) == 1


def test_small_sets_fit_into_some_coarse_box():
    family, rng = boxes(1), np.random.default_rng(1)
    level = 12
    diameter = int(2 * family.holds(level)) - 2
    for _ in range(50):
        low = rng.integers(0, (1 << 16) - (1 << level), 1)
        interval = low + rng.integers(0, diameter + 1, (64, 1))
        keys = family.keys(interval, level, fine=False)
        assert (keys == keys[:, :1]).all(axis=1).any()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_fine_offsets_include_the_coarse(d):
    coarse = {tuple(row) for row in boxes(d).offsets(fine=False).round(9)}
    assert coarse <= {tuple(row) for row in boxes(d).offsets(fine=True).round(9)}


def test_projection_is_exact_under_any_split():
    family = boxes(40)
    where = points(family, n=300)
    parts = [family.coordinates(part) for part in np.array_split(where, 11)]
    assert np.array_equal(np.concatenate(parts), family.coordinates(where))


def test_projection_keeps_distances_on_average():
    family = boxes(200, step=2.0**-10)
    rng = np.random.default_rng(1)
    moves = rng.integers(-100, 100, (2000, 200))
    middle = np.full(200, 500)
    moved = family.coordinates(middle + moves) - family.coordinates(middle[None])
    ratio = (moved / family.unit).std() / moves.std()
    assert 0.9 < ratio < 1.1


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_ball_contains_its_box(d):
    """It is never empty inside: its radius is the unit of noise."""
    family = boxes(d)
    where = points(family)
    coordinates = family.coordinates(where)
    for level in family.levels:
        for i in (0, 57, 211):
            key = int(family.keys(coordinates[i : i + 1], level, fine=True)[1, 0])
            corner = family.corner(key, level)
            inside = ((coordinates >= corner) & (coordinates < corner + (1 << level))).all(axis=1)
            center, radius = family.ball(level, corner)
            assert inside[i]
            assert radius >= 1
            assert ((center >= 0) & (center <= np.asarray(family.grid.extents))).all()
            assert (np.linalg.norm(where[inside] - center, axis=1) <= radius).all()
            if not family.projected:
                assert radius <= max(1, (1 << level) * np.sqrt(d) / 2 + 1)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", ["uniform", "clump", "copies", "one", "none"])
def test_largest_counts_are_those_of_all_boxes(d, shape):
    """Of the coarse offsets, from the cells alone; and crowded boxes are those of the fine offsets."""
    family, rng = boxes(d), np.random.default_rng(d)
    extent = family.grid.extents[0]
    where = rng.integers(0, extent + 1, (300, d))
    if shape != "uniform":
        where[:150] = extent // 3 + rng.integers(0, extent // 500 + 2, (150, d))
    if shape == "copies":
        where[100:] = where[rng.integers(0, 5, 200)]
    where = {"one": where[:1], "none": where[:0]}.get(shape, where)
    counted, coordinates, largest = family.tally(where), family.coordinates(where), []
    for level in family.levels:
        keys = family.keys(coordinates, level, fine=False).ravel()
        largest.append(int(np.unique(keys, return_counts=True)[1].max(initial=0)))
        for floor in (0, 3):
            all_boxes = Counts.of(family.keys(coordinates, level, fine=True).ravel()).above(floor)
            assert crowded(family, counted, level, floor) == all_boxes
    for low, high in ((0, 1000), (30, 130), (70, 90), (0, 3)):
        assert family.fullest(counted, low, high).tolist() == np.clip(largest, low, high).tolist()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_box_lies_in_a_coarse_box_of_each_level_that_is_said_to_hold_it(d):
    """At the tightest pair of levels, for every corner where borders are near, and some others."""
    family, rng = boxes(d), np.random.default_rng(d)
    tried = 0
    for level in family.levels:
        wider = next((j for j in family.levels if j > level and family.nests(level, j)), None)
        if wider is None:
            continue
        side, k = 1 << level, family.dimension
        borders = -np.floor(family.offsets(fine=False) * (1 << wider)).astype(np.int64) % (1 << wider)
        near = rng.choice(borders.ravel(), (2000, k)) - rng.integers(0, side + 1, (2000, k)) + (1 << wider)
        low = near[(near >= 0).all(axis=1)]
        ends = [family.keys(each, wider, fine=False) for each in (low, low + side - 1)]
        held = np.ones(ends[0].shape, dtype=bool)
        for axis in range(k):  # a box is held where both ends along each axis are
            other = low.copy()
            other[:, axis] += side - 1
            held &= family.keys(other, wider, fine=False) == ends[0]
        assert held.any(axis=0).all()
        tried += 1
    assert tried > 3


@pytest.mark.parametrize("d", DIMENSIONS)
def test_cells_name_their_place(d):
    """And are much smaller than the finest boxes, where they are wider than a grid step."""
    for step in (2.0**-6, 2.0**-16, 2.0**-24):
        family = boxes(d, step)
        where = points(family)
        counted = family.tally(np.concatenate([where, where[:20]]))
        cells, counts = np.unique(
            family.coordinates(np.concatenate([where, where[:20]])), axis=0, return_counts=True
        )
        order = np.lexsort(family.cells(counted.keys).T[::-1])
        assert np.array_equal(family.cells(counted.keys)[order], cells)
        assert np.array_equal(counted.counts[order], counts)
        assert family.unit >= 1 or family.bottom >= 3
