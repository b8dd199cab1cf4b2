"""The cover by balls: what a key names, how many balls hold a record, and which balls are held."""

import math

import numpy as np
import pytest

from core.aggregate import Counts
from core.domain import Ball, Grid
from core.one_cluster.practical import ball_cover
from core.one_cluster.practical.ball_cover import DIMENSIONS, BallCover
from tests.core.one_cluster.practical.steps import crowded


def cover(d, step=2.0**-12):
    return BallCover(Grid((0.0,) * d, (1.0,) * d, step))


def points(balls, n=60, seed=0):
    extents = np.asarray(balls.grid.extents)
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 2, (n // 3, len(extents))) * extents
    return np.concatenate([rng.integers(0, extents + 1, (n, len(extents))), corners])


def keys_of(balls, where, level):
    return np.concatenate(balls.keys(balls.coordinates(where), level, fine=True))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_key_counts_the_records_within_the_radius_of_its_center(d):
    """So different balls have different keys, and no record counts twice in one of them."""
    balls = cover(d)
    where = points(balls)
    for level in balls.levels:
        keys = keys_of(balls, where, level)
        assert (keys >= 0).all()
        radius, named, half_cell = balls.radius(level), np.unique(keys), (balls.cell - 1) // 2
        centers = [tuple(balls.corner(int(key), level) + radius - half_cell) for key in named[:300]]
        assert len(set(centers)) == len(centers)
        for key, center in zip(named, centers, strict=False):
            away = balls.coordinates(where) - np.array(center) // balls.cell
            assert (keys == key).sum() == ((away**2).sum(axis=1) < balls.reach(level) ** 2).sum()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_no_record_is_in_more_balls_than_is_charged_for(d):
    """Nor in many fewer, which would make the noise too large."""
    balls = cover(d)
    for level in balls.levels:
        most = max(len(keys_of(balls, point[None], level)) for point in points(balls, 30, seed=level))
        assert balls.most_keys / 60 < most <= balls.most_keys


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_record_has_few_keys(d):
    """The second round counts every ball of one level that holds a record."""
    balls = cover(d, 2.0**-16)
    where = points(balls, 60)[:60]
    wide = [level for level in balls.levels if balls.radius(level) > balls.resolution]
    assert max(len(keys_of(balls, where, level)) for level in wide) / 60 <= 50


@pytest.mark.parametrize("d", DIMENSIONS)
def test_cells_name_their_place(d):
    """And no step is lost where the domain is narrow enough for keys."""
    for step in (2.0**-6, 2.0**-16):
        balls = cover(d, step)
        where = np.concatenate([points(balls), points(balls)[:20]])
        counted = balls.tally(where)
        cells, counts = np.unique(balls.coordinates(where), axis=0, return_counts=True)
        named = balls.cells(counted.keys)
        order = np.lexsort(named.T[::-1])
        assert np.array_equal(named[order], cells)
        assert np.array_equal(counted.counts[order], counts)
    assert cover(d, 2.0**-6).cell == 1
    assert cover(d, 2.0**-16).cell == {2: 1, 3: 1, 4: 3, 5: 17, 6: 65}[d]


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("shape", ["uniform", "clump", "two", "copies", "one", "none"])
def test_the_fullest_ball_is_that_of_all_balls(d, shape):
    """Whatever is passed over, the largest counts are those of counting every ball, between the bounds."""
    balls, rng = cover(d, 2.0**-8 if d > 4 else 2.0**-12), np.random.default_rng(d)
    extent = balls.grid.extents[0]
    where = rng.integers(0, extent + 1, (300, d))
    if shape != "uniform":
        where[:100] = extent // 3 + rng.integers(0, extent // 50 + 2, (100, d))
    if shape == "two":
        where[100:180] = extent - rng.integers(0, extent // 20 + 2, (80, d))
    if shape == "copies":
        where[100:] = where[100 + rng.integers(0, 5, 200)]
    where = {"one": where[:1], "none": where[:0]}.get(shape, where)
    counted, largest = balls.tally(where), []
    for level in balls.levels:
        _, counts = np.unique(keys_of(balls, where, level), return_counts=True)
        largest.append(int(counts.max(initial=0)))
    for low, high in ((0, 1000), (30, 130), (70, 90), (0, 3)):
        found = balls.fullest(counted, low, high)
        assert found.dtype == np.int64
        assert found.tolist() == np.clip(largest, low, high).tolist()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_full_ball_is_found_that_lies_in_none_of_the_next_level(d):
    """Its records fill it to the edge, and no ball of the next coarser level holds them all."""
    balls, rng, hidden = cover(d, 2.0**-10), np.random.default_rng(d), 0
    for level in balls.levels[len(balls.levels) // 4 : -4]:
        for _ in range(5):
            center = balls.nearest(rng.integers(0, np.asarray(balls.grid.extents) // balls.cell + 1), level)
            away = rng.normal(size=(200, d))
            away *= (balls.reach(level) - 1) / np.linalg.norm(away, axis=1)[:, None]
            where = (center + away.astype(np.int64)) * balls.cell
            where = where[((where >= 0) & (where <= balls.grid.extents[0])).all(axis=1)]
            if not len(where):
                continue
            wider = np.unique(keys_of(balls, where, level + 1), return_counts=True)[1].max(initial=0)
            hidden += wider < len(where)
            found = balls.fullest(balls.tally(where), len(where) - 1, len(where))
            assert found[level] == len(where)
    assert hidden > 5


@pytest.mark.parametrize("d", DIMENSIONS)
def test_any_small_ball_lies_in_some_ball_of_the_level(d):
    balls, rng = cover(d), np.random.default_rng(d)
    extent = balls.grid.extents[0]
    for level in balls.levels:
        for _ in range(20):
            direction = rng.normal(size=(100, d))
            direction /= np.linalg.norm(direction, axis=1)[:, None]
            around = rng.uniform(0, extent, d)
            small = np.rint(around + max(0.0, balls.holds(level) - math.sqrt(d) / 2) * direction)
            small = np.clip(small, 0, extent).astype(np.int64)
            if np.linalg.norm(small - around, axis=1).max() < balls.holds(level):
                keys = keys_of(balls, small, level)
                assert np.unique(keys, return_counts=True)[1].max() == len(small)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_last_level_holds_everything(d):
    balls = cover(d)
    keys = keys_of(balls, points(balls), balls.levels[-1])
    assert np.unique(keys, return_counts=True)[1].max() == len(points(balls))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_released_ball_holds_what_its_key_counts(d):
    """Also where the center lies outside of the domain, and is moved into it."""
    balls = cover(d)
    where = points(balls)
    for level in balls.levels:
        keys = keys_of(balls, where, level)
        for key in np.unique(keys)[:100]:
            center, radius = balls.ball(level, balls.corner(int(key), level))
            assert ((center >= 0) & (center <= np.asarray(balls.grid.extents))).all()
            within = ((where - center) ** 2).sum(axis=1) <= radius**2
            assert within.sum() >= (keys == key).sum()


@pytest.mark.parametrize(("d", "most"), [(2, 3.0), (3, 3.0), (4, 3.0), (5, 3.0), (6, 6.8)])
@pytest.mark.parametrize("step", [2.0**-10, 2.0**-16])
def test_the_radius_exceeds_the_smallest_by_little(d, most, step):
    balls = cover(d, step)
    assert 1 < balls.factor <= most * (1 + 1e-9)
    for level in balls.levels[1:]:
        if balls.radius(level) > balls.resolution:
            assert balls.radius(level) <= balls.factor * balls.holds(level - 1)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_the_largest_domain_is_served(d):
    side = float(math.isqrt((2**62 - 1) // d))
    balls = BallCover(Grid((0.0,) * d, (side,) * d, 1.0, Ball((0.0,) * d, 1e12)))
    corners = np.array([[0] * d, balls.grid.extents])
    for level in balls.levels:
        keys = keys_of(balls, corners, level)
        assert (keys >= 0).all()
        center, radius = balls.ball(level, balls.corner(int(keys[0]), level))
        assert radius > 0
        assert (center >= 0).all()


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("floor", [0, 2, 40])
def test_crowded_balls_are_those_of_all_balls(d, floor, monkeypatch):
    """Of every level, from the cells alone: what counting every ball of every record gives."""
    monkeypatch.setattr(ball_cover, "_AT_ONCE", 50)  # so that balls have cells of several parts
    balls, rng = cover(d), np.random.default_rng(d)
    where = np.concatenate([points(balls), 2000 + rng.integers(-9, 10, (90, d)), np.full((30, d), 2000)])
    cells = balls.tally(where)
    assert (cells.counts > 1).any() and len(cells) > 50
    seen = 0
    for level in balls.levels:
        all_balls = Counts.of(keys_of(balls, where, level)).above(floor)
        assert crowded(balls, cells, level, floor) == all_balls
        seen += len(all_balls) > 1
    assert seen > 3


@pytest.mark.parametrize("d", DIMENSIONS)
def test_no_cells_crowd_no_ball(d):
    balls = cover(d)
    assert len(crowded(balls, balls.tally(points(balls)[:0]), balls.levels[-1], 0)) == 0
