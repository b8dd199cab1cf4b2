"""Boxes and cells cover every point exactly once, and find the points that lie in them."""

import itertools

import numpy as np
import pytest

from core.ranges.boxes import MOST_CELLS, Boxes, Cells, Equal, Halved, part_of
from core.ranges.rounds import boxes_of_axis, cells_of_axis, parts_of_boxes


@pytest.mark.parametrize(("size", "parts"), [(1, 1), (7, 3), (16, 16), (10, 4), (2**31, 2**20)])
def test_part_i_begins_where_it_should(size: int, parts: int) -> None:
    some = np.unique(np.linspace(0, parts - 1, 500).astype(np.int64))
    first, last = some * size // parts, (some + 1) * size // parts - 1
    assert (part_of(first, size, parts) == some).all() and (part_of(last, size, parts) == some).all()


def all_points(sizes: tuple[int, ...]) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int64)


@pytest.mark.parametrize("sizes", [(13, 8), (1, 9), (5, 6, 4), (2, 2)])
@pytest.mark.parametrize("kind", ["equal", "halved"])
def test_every_point_is_in_one_box_and_one_cell_of_it(sizes: tuple[int, ...], kind: str) -> None:
    points, rng = all_points(sizes), np.random.default_rng(0)
    if kind == "equal":
        layout = Equal.of(sizes, 3)
        edges = np.arange(layout.number + 1)
    else:
        layout = Halved.of(sizes)
        edges = np.array([0, layout.number])
        for _ in range(4):  # halve some boxes, as `Splits` does
            middles = (edges[:-1] + edges[1:]) // 2
            edges = np.unique(np.append(edges, middles[(rng.random(len(middles)) < 0.6)]))
    boxes = Boxes.of(layout, edges)
    at = boxes.find(points)
    assert ((points >= boxes.lows[at]) & (points < boxes.highs[at])).all()
    assert (boxes.highs - boxes.lows).prod(axis=1).sum() == len(points) == np.bincount(at).sum()
    parts = np.minimum(rng.integers(1, 4, boxes.lows.shape), boxes.highs - boxes.lows)
    cells = Cells(boxes, parts)
    box, lows, highs = cells.corners()
    cell = cells.find(points)
    assert ((points >= lows[cell]) & (points < highs[cell])).all() and (box[cell] == at).all()
    assert (np.bincount(cell, minlength=len(box)) == (highs - lows).prod(axis=1)).all()


def test_halves_of_a_range_of_numbers_are_halves_of_its_box() -> None:
    layout = Halved.of((64, 16))
    assert layout.axes[:4] == (0, 1, 0, 1) and layout.number == 64 * 16
    whole = Boxes.of(layout, np.array([0, 512, 768, 1024]))
    assert whole.lows.tolist() == [[0, 0], [32, 0], [32, 8]]
    assert whole.highs.tolist() == [[32, 16], [64, 8], [64, 16]]


@pytest.mark.parametrize("sizes", [(2**31, 2**31), (3, 2**31), (2**20, 2**20, 2**20), (1, 1)])
def test_boxes_of_wide_axes_are_few(sizes: tuple[int, ...]) -> None:
    layout = Halved.of(sizes)
    assert layout.number <= MOST_CELLS
    corners = np.array([[0] * len(sizes), [size - 1 for size in sizes]])
    assert layout.codes(corners).tolist() == [0, layout.number - 1]


def test_the_published_sizes_of_grids() -> None:
    """Qardaji, Yang and Li 2013: m^2 = n epsilon / 10, first level max(10, m / 4), second n' epsilon' / 5."""
    assert cells_of_axis(np.array([1e6, -1e6]), 1.0, 2, 10.0).tolist() == [316, 1]
    assert boxes_of_axis(1e6, 1.0, 2) == 79 and boxes_of_axis(1e3, 1.0, 2) == 10
    assert boxes_of_axis(1e30, 1.0, 2) == 512 and boxes_of_axis(0, 1.0, 3) == 4
    assert boxes_of_axis(1e30, 1.0, 3) == 64  # cubed, they are as many
    assert cells_of_axis(np.array([1e6]), 1.0, 3, 10.0).tolist() == [round((2 / 3 * 1e5) ** 0.4)] == [85]


def test_cells_are_never_more_than_the_bound() -> None:
    layout = Equal.of((2**20, 2**20), 10)
    boxes = Boxes.of(layout, np.arange(101))
    parts = parts_of_boxes(boxes, np.array([10**15] * 50 + [-5] * 50), 1.0)
    assert parts.prod(axis=1).sum() <= MOST_CELLS
    assert (parts[50:] == 1).all() and parts[:50].min() > 50


def test_an_axis_of_few_points_has_a_box_for_each() -> None:
    assert [Equal.of((2, 9), most).shape for most in (1, 2, 3)] == [(1, 1), (2, 2), (2, 3)]
