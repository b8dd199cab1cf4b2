"""Rounds of counts of rectangles: make boxes, count them roughly, cut them into cells, and count both.

Each round sees all records, and one record is in one box and in one cell. So each histogram of boxes or of
cells has L1 sensitivity 1 if a record is added or removed, and 2 if one is replaced. The rounds compose in
sequence. Boxes and cells follow from what earlier rounds released. A policy of distances does not lower this:
a record that moves by a single step may still leave one cell for another.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import CellCounts, Tally
from core.draws import Draw, Laplace
from core.gaps import Order
from core.mechanisms.splits import Splits
from core.noise import Noise
from core.ranges.boxes import MOST_CELLS, Boxes, Cells, Equal, Floats, Halved, Ints
from core.ranges.found import Asked, CountedCells
from core.rounds import Block

MOST_BOXES = MOST_CELLS >> 2

_PER_GRID = 10.0  # constant c of UG: a grid of m x m cells has m = sqrt(n epsilon / c)
_PER_CELL = 5.0  # the same for the cells of a box, which are adjusted to the count of their box


def cells_of_axis(records: Floats, epsilon: float, axes: int, constant: float) -> Floats:
    """Return how many cells on each axis serve so many records best, at least 1.

    With m cells on each axis of d, the noise of a rectangle grows as m^(d / 2) / epsilon, and the error from
    uneven cells falls as n / m. Their sum is least where m^(d / 2 + 1) is a multiple of 2 n epsilon / d; in
    the plane this is the uniform grid of Qardaji, Yang and Li (ICDE 2013, Guideline 1), m^2 = n epsilon / c.

    Args:
        records: number of them, shape (m,); below 0 counts as 0.
        epsilon: reciprocal of the noise's scale.
        axes: d.
        constant: c.
    """
    powers = 2 / axes * np.maximum(records, 0) * epsilon / constant
    return np.asarray(np.maximum(1, np.rint(powers ** (2 / (axes + 2)))), dtype=np.float64)


def boxes_of_axis(records: float, epsilon: float, axes: int) -> int:
    """Return how many boxes on each axis a grid has, whose boxes are cut into cells again.

    These are a sixteenth of the cells of a uniform grid, but 100 or more (the same, Section IV.B).
    """
    best = float(cells_of_axis(np.array(records), epsilon, axes, _PER_GRID))
    least, most = math.pow(100, 1 / axes), math.pow(MOST_BOXES, 1 / axes)
    return math.floor(min(max(least, best / math.pow(16, 1 / axes)), most) + 1e-9)


def parts_of_box(records: float, epsilon: float, axes: int) -> float:
    """Return in how many parts a box with so many records is cut on each axis."""
    return float(cells_of_axis(np.array(records), epsilon, axes, _PER_CELL))


def parts_of_boxes(boxes: Boxes, sizes: Ints, epsilon: float) -> Ints:
    """Return in how many parts each box is cut on each axis, given its noisy count, shape (m, d)."""
    axes, widths = boxes.lows.shape[1], boxes.highs - boxes.lows
    records = sizes.astype(np.float64)
    while True:
        each = cells_of_axis(records, epsilon, axes, _PER_CELL)
        parts = np.asarray(np.minimum(np.minimum(each, MOST_CELLS)[:, None], widths), dtype=np.int64)
        if parts.astype(np.float64).prod(axis=1).sum() <= MOST_CELLS:
            return parts
        records = records * 0.8


@dataclass(frozen=True)
class EqualBoxes:
    """Release the number of records, of sensitivity 1, and boxes that follow from it.

    Args:
        sizes: points of each axis.
        total: noise of the number; None where it is public.
        epsilon: of the counts of a uniform grid at the same budget.
    """

    sizes: tuple[int, ...]
    total: Laplace | None
    epsilon: float
    purpose: ClassVar[str] = "about how many rows there are"
    name: str = "number_of_rows"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return () if self.total is None else (self.total,)

    def summarize(self, block: Block, state: None) -> Tally:
        """Count the records."""
        return Tally(np.array([len(block.points)]))

    def release(self, aggregate: Tally, state: None, noise: Noise) -> Boxes:
        """Release equal boxes."""
        records = aggregate.totals if self.total is None else self.total.add(aggregate.totals, noise)
        most = boxes_of_axis(float(records[0]), self.epsilon, len(self.sizes))
        layout = Equal.of(self.sizes, most)
        return Boxes.of(layout, np.arange(layout.number + 1))


@dataclass(frozen=True)
class HalvedBoxes:
    """Halve the domain, and again every half that seems to hold many records; see `Splits`.

    Args:
        layout: numbers the finest boxes such that a half is a range of numbers.
        splits: decides what is halved.
        threshold: number of records from which a box is halved, public.
    """

    layout: Halved
    splits: Splits
    threshold: int
    purpose: ClassVar[str] = "boxes that are small where rows are dense"
    name: str = "boxes"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.splits,)

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds."""
        return self.layout.number

    def summarize(self, block: Block, state: None) -> CellCounts:
        """Count the records of every finest box."""
        return CellCounts.of(self.layout.codes(block.points), self.layout.number)

    def release(self, aggregate: CellCounts, state: None, noise: Noise) -> Boxes:
        """Release the boxes."""
        order = Order.of_counts(aggregate.counts())
        edges = self.splits.edges(order.ranks_at, self.layout.number, self.threshold, MOST_BOXES, noise)
        return Boxes.of(self.layout, edges)


@dataclass(frozen=True)
class CutBoxes:
    """Release a rough count of each box, and cells that follow from it.

    Args:
        sizes: noise of the counts.
        epsilon: reciprocal of the scale of the cells' noise.
    """

    sizes: Laplace
    epsilon: float
    purpose: ClassVar[str] = "in how many cells each box is cut"
    name: str = "cells"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.sizes,)

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds."""
        return MOST_BOXES

    def summarize(self, block: Block, state: Boxes) -> CellCounts:
        """Count the records of every box."""
        return CellCounts.of(state.find(block.points), len(state))

    def release(self, aggregate: CellCounts, state: Boxes, noise: Noise) -> Cells:
        """Release the cells."""
        noisy = self.sizes.add(aggregate.dense(), noise)
        return Cells(state, parts_of_boxes(state, noisy, self.epsilon))


@dataclass(frozen=True)
class CountCells:
    """Release the counts of all boxes and of all cells, with fresh noise.

    Args:
        boxes: noise of the boxes.
        cells: noise of the cells.
        asked: which rectangles are answered.
    """

    boxes: Laplace
    cells: Laplace
    asked: Asked
    purpose: ClassVar[str] = "how many rows boxes and cells hold"
    name: str = "counts"
    floor: None = None

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.boxes, self.cells

    @property
    def most_counts(self) -> int:
        """Most counts that the private stage holds."""
        return MOST_CELLS

    def summarize(self, block: Block, state: Cells) -> CellCounts:
        """Count the records of every cell."""
        return CellCounts.of(state.find(block.points), int(state.starts[-1]))

    def release(self, aggregate: CellCounts, state: Cells, noise: Noise) -> CountedCells:
        """Release the counts."""
        exact = aggregate.dense()
        boxes = self.boxes.add(np.add.reduceat(exact, state.starts[:-1]), noise)
        counts = self.cells.add(exact, noise)
        return CountedCells(state, boxes, counts, self.boxes.scale, self.cells.scale, self.asked)
