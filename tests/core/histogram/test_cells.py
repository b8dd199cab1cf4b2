"""Cells hold the points that they say, on any axis."""

from itertools import product

import numpy as np
import pytest

from core.domain import Grid
from core.histogram.cells import Cells, shape_of
from core.times import Times


def test_cells_hold_what_they_say():
    grid = Grid((-1.0, 10.0), (1.0, 13.0), 0.25)
    cells = Cells(grid, (4, 5))
    points = np.array(list(product(range(9), range(13))))
    keys = cells.keys(points)
    table = cells.table(np.arange(20), np.zeros(20))
    values = grid.restore(points)
    for axis, last in ((0, 1.0), (1, 13.0)):
        low, high = table[f"lower_{axis}"][keys], table[f"upper_{axis}"][keys]
        assert (low <= values[:, axis] + 1e-9).all()
        assert ((values[:, axis] < high - 1e-9) | (np.abs(values[:, axis] - last) < 1e-9)).all()
        assert table[f"upper_{axis}"].max() == pytest.approx(last)
    places = [np.searchsorted(cut, points[:, axis], "right") for axis, cut in enumerate(cells.cuts)]
    assert np.array_equal(np.ravel_multi_index(places, (4, 5)), keys)
    assert [table["cell_0"][7], table["cell_1"][7]] == [1, 2]


def test_as_many_cells_as_points_are_one_point_each():
    grid = Grid((17.0,), (90.0,), 1.0)
    cells = Cells(grid, (74,))
    assert np.array_equal(cells.keys(np.arange(74)[:, None]), np.arange(74))
    table = cells.table(np.arange(74), np.zeros(74))
    assert np.array_equal(table["lower_0"], np.arange(17.0, 91.0))
    assert np.array_equal(table["lower_0"], table["upper_0"])


@pytest.mark.parametrize("cells", [3, 1000, 2**40 + 1, 2**62 - 2])
def test_cells_of_the_widest_axis_are_exact(cells):
    low = 2**60 + 1
    grid = Grid((low,), (low + 2**62 - 2,), 1)
    whole, extent = Cells(grid, shape_of(cells, grid)), 2**62 - 2
    points = [0, 1, 2**31, 2**53 + 1, 2**61 + 7, extent - 1, extent]
    keys = whole.keys(np.array(points)[:, None])
    assert keys.tolist() == [min(p * cells // extent, cells - 1) for p in points]
    table = whole.table(keys, np.ones(len(keys), dtype=np.int64))
    firsts = [[-(-(key + i) * extent // cells) for key in keys.tolist()] for i in (0, 1)]
    assert table["lower_0"].tolist() == [low + first for first in firsts[0]]
    assert table["upper_0"].tolist() == [low + first for first in firsts[1]]
    if cells == 3:
        assert [int(cut) for cut in whole.cuts[0]] == [-(-i * extent // 3) for i in (1, 2)]


@pytest.mark.parametrize("cells", [1, 5, 9, 62, 63])
def test_cells_of_times_end_at_points_of_the_grid(cells):
    times = Times.of(("2009-02-02",), ("2009-04-05",), "1 day")
    whole = Cells(Grid((0.0,), (62.0,), 1.0, times=times), (cells,))
    keys = whole.keys(np.arange(63)[:, None])
    firsts = [int(np.flatnonzero(keys == key)[0]) for key in range(cells)]
    table = whole.table(np.arange(cells), np.zeros(cells))
    assert table["lower_0"].tolist() == firsts
    assert table["upper_0"].tolist() == (firsts if cells == 63 else [*firsts[1:], 62])
    if cells == 9:
        assert firsts == list(range(0, 63, 7))
