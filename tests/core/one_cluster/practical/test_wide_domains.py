"""The cover of domains so wide that floats of squared distances are not exact."""

import math

import numpy as np
import pytest

from core.budget import Budget
from core.domain import Ball, Grid, distances_squared
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.practical import ball_cover
from core.one_cluster.practical.ball_cover import DIMENSIONS, BallCover
from core.one_cluster.practical.method import Practical
from core.task import Setting


def cube(d, side, ball=None):
    return Grid((0.0,) * d, (float(side),) * d, 1.0, ball)


WIDE = [
    cube(2, 2**26),
    cube(2, 2**28),
    cube(2, 2**30),
    cube(2, 2**30, Ball((2.0**29,) * 2, 2.0**31)),
    cube(3, 2**30),
    cube(6, 2**28),
]


def first_round(grid):
    """Return what chooses a level, of a plan without sampling."""
    params, one = OneCluster(2000, 0.05, "practical", None), Neighbors("add_or_remove_one")
    return Practical(Setting(grid, params, Budget(1.0, 1e-6), one, b"a salt of 16 byt")).rounds(1.0)[0].radius


def beside_the_border(reach, d):
    """Return (d,) integers whose squared length is less than `reach` squared by very little."""
    along = reach - np.arange(1, min(reach - 1, 1 << 18), dtype=np.int64)
    rest = reach**2 - 1 - along**2
    across = np.sqrt(rest.astype(np.float64)).astype(np.int64)
    across -= across * across > rest
    best = int(np.argmin(rest - across * across))
    return np.array([along[best], across[best]] + [0] * (d - 2))


def antipodal(cover, level):
    """Return 3,247 records (n, d) of which only one ball of a level has most, and one more record (d,).

    Nearly half of the records are in a cell at the ball's border, and as many opposite. A few more decide
    which balls are tried first: with the further record, this ball is none of them.
    """
    d, center = cover.dimension, center_within(cover, level)
    offset = beside_the_border(cover.reach(level), d)
    a, b, step = center + offset, center - offset, np.eye(d, dtype=np.int64)[0]
    near = [b + i * step for i in range(1, 5)] + [center, a - 2 * step, a - step]
    cells = np.concatenate([np.repeat([a, b], 1620, axis=0), near])
    return cells * cover.cell, (a + step) * cover.cell


def center_within(cover, level):
    """Return the lowest center (d,) of even multiples whose ball has no negative coordinates."""
    step = 2 * cover._pitches[level]
    return np.full(cover.dimension, -(-cover.reach(level) // step) * step)


def fitting(cover):
    """Return levels, from the finest, of which some ball lies in the domain."""
    return [
        level
        for level in cover.levels
        if cover._pitches[level] >= 16 and 2 * center_within(cover, level)[0] <= min(cover._extents)
    ]


@pytest.mark.parametrize("grid", WIDE, ids=str)
def test_a_record_moves_scores_by_one_where_others_are_at_the_border_of_a_ball(grid):
    """The new record is in a cell of its own, so other balls are tried first."""
    first = first_round(grid)
    for level in fitting(first.regions)[-4:]:
        records, new = antipodal(first.regions, level)
        assert ((records >= 0) & (records <= np.asarray(grid.extents))).all()
        scores = []
        for points in (records, np.vstack([records, new])):
            scores.append(first._scores(first.regions.tally(points)))
        change = scores[1] - scores[0]
        assert np.abs(change).max() <= 1
        assert scores[0][level] == scores[1][level] == 0


@pytest.mark.parametrize("grid", WIDE, ids=str)
def test_keys_and_counts_of_balls_are_exact_at_the_border(grid):
    """A key holds the records nearer to its center than the radius, in exact arithmetic."""
    cover = BallCover(grid)
    for level in fitting(cover):
        reach, center = cover.reach(level), center_within(cover, level)
        inside = beside_the_border(reach, cover.dimension)
        at_border = np.array([reach] + [0] * (cover.dimension - 1))
        cells = center + np.array([inside, inside[::-1], at_border])
        key = np.unique(np.concatenate(cover.keys(center[None], level, fine=True)))
        middle = [cover.corner(int(k), level) + cover.radius(level) - (cover.cell - 1) // 2 for k in key]
        about = [k for k, m in zip(key, middle, strict=True) if np.array_equal(m, center * cover.cell)]
        assert len(about) == 1
        held = [
            (np.concatenate(cover.keys(cell[None], level, fine=True)) == about[0]).any() for cell in cells
        ]
        assert held == [True, True, False]
        assert held == (distances_squared(cells, center) < reach**2).tolist()


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("ball", [False, True])
def test_squares_of_distances_fit_into_integers(d, ball):
    """Of the largest domains, and of those with the most cells."""
    cells = BallCover(cube(d, 1 << 28))._extents[0]
    for side in (math.isqrt((2**62 - 1) // d), 1 << 29, 1 << 28, (1 << 28) - 1, cells):
        everything = Ball((0.0,) * d, 1e12) if ball else None
        cover = BallCover(cube(d, side, everything))
        pitch, reach = cover._pitches[-1], cover.reach(cover.levels[-1])
        furthest = pitch + 2 * pitch * cover.around(cover.levels[-1])
        assert furthest**2 + max(reach**2, d * pitch**2) < 2**63
        assert d * (max(cover._extents) + pitch) ** 2 < 2**63


def test_a_cover_whose_squares_do_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(ball_cover, "_WIDEST", 1 << 30)
    with pytest.raises(OverflowError, match="exceed int64"):
        BallCover(cube(2, 2**30)).reach(0)


def test_the_longest_line_like_domain_is_served():
    cover = BallCover(Grid((0.0, 0.0), (2.0**31 - 1, 1000.0), 1.0))
    cells = np.array([[0, 0], list(cover._extents)])
    last = cover.levels[-1]
    assert cover.fullest(cover.tally(cells * cover.cell), 0, 2)[last] == 2
    keys = np.concatenate(cover.keys(cells, last, fine=True))
    assert np.unique(keys, return_counts=True)[1].max() == 2


def test_a_small_cluster_in_a_wide_plane_keeps_its_promise_of_a_radius():
    """A plane of 2^30 steps is counted finely enough for radii of 2^-22 of it."""
    assert BallCover(cube(2, 2**30)).resolution <= 2**8
    assert BallCover(cube(2, 2**28)).cell == 1
