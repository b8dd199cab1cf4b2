import numpy as np
import pytest

from core.domain import Grid
from core.one_cluster.practical.boxes import Boxes

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
