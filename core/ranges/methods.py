"""The methods of counts of rectangles: boxes of a grid, or of a tree, each cut into cells."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from core.draws import Charged, Laplace
from core.mechanisms.splits import Splits
from core.mechanisms.tails import largest_one, variance
from core.ranges.boxes import MOST_CELLS, Halved
from core.ranges.found import Asked, Promises
from core.ranges.params import Ranges
from core.ranges.rounds import (
    MOST_BOXES,
    CountCells,
    CutBoxes,
    EqualBoxes,
    HalvedBoxes,
    boxes_of_axis,
    parts_of_box,
)
from core.task import Accuracy, Method
from core.tightness import Tightness

_SPREADS = (1.0, 1 / 16, 0.0)  # of each axis: where made-up records lie on which methods are compared
_UNEVEN = math.sqrt(2) / 10  # error of cells that a rectangle cuts, as a part of their records (c0 of UG)


_TIGHTNESS = Tightness(
    "Errors of cells are usually smaller than promised by a third or more: the promise is for the largest "
    "number of cells that there can be, and for cells whose box tells nothing of them.",
    reached=False,
)


@dataclass(frozen=True)
class Made:
    """What a method makes of evenly spread records on a part of each axis.

    Args:
        boxes: how many boxes hold them, on each axis.
        width: of a box, as a part of the axis.
        records: in each of these boxes.
        empty: how many boxes hold none.
    """

    boxes: float
    width: float
    records: float
    empty: float


class _BoxesAndCells(Method[Ranges]):
    """Boxes, cells in each box, and counts of both."""

    parts: ClassVar[tuple[float, float, float]]
    """Parts of epsilon for the rough counts of boxes, for their counts, and for the counts of cells."""

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        sizes, boxes, cells = self._laplaces(share)
        asked = Asked(self.setting.params.ranges, self.setting.params.failure)
        return (self._boxes(share), CutBoxes(sizes, 1 / cells.scale), CountCells(boxes, cells, asked))

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        Let v be the variance of a cell's own noise and b that of its box. The estimate has at most the
        variance v. Each term of its error has at most the variance v too, also that of the box: its weight in
        a cell is at most v / (v + b), and v^2 b / (v + b)^2 <= v. So the bound of `largest_one` holds with
        the scale of the cells: for a term c Z with c^2 b <= v and c <= 1,
        b (cosh(c rate) - 1) <= (c^2 b / v) v (cosh(rate) - 1), and -ln(1 - x) is convex.
        """
        cells = self._laplaces(share)[2]
        own, failure = variance(cells.scale), self.setting.params.failure / self._most(MOST_CELLS)
        bound = largest_one(own, cells.scale, failure)
        errors = [self._error(spread, share) for spread in _SPREADS]
        notes = (
            f"There are at most {self._most(MOST_BOXES):,} boxes and {self._most(MOST_CELLS):,} cells.",
            "The error of a rectangle also depends on how evenly rows lie in the cells that it cuts. The "
            "release has bounds for each rectangle that hold however they lie.",
        )
        return Accuracy(
            Promises(math.ceil(bound), math.sqrt(own)),
            math.prod(errors) ** (1 / len(errors)),
            notes,
            tightness={"cell_error": _TIGHTNESS},
        )

    def _error(self, spread: float, share: float) -> float:
        """Return the expected error of half of each axis, where `records` lie evenly on a part of it.

        The rectangle has half of the part that holds records, and half of what is empty. Whole boxes have the
        noise of their average, the boxes at its sides that of half of their cells, and an empty box is one
        cell. The cells that are cut hold a part of all records, which is spread unevenly in them, unless a
        cell is a grid point. A spread of 0 is one point, where all records are tied.
        """
        point = 1 / min(self._sizes)
        spread = max(spread, point)
        axes, made = self.setting.grid.dimension, self._made(spread, share)
        _, boxes, cells = self._laplaces(share)
        parts = parts_of_box(made.records, 1 / cells.scale, axes)
        parts = max(1.0, min(parts, made.width / point))
        noise, number = variance(cells.scale), parts**axes
        average = 1 / (1 / variance(boxes.scale) + 1 / (number * noise))
        half = max(1.0, made.boxes / 2)
        noisy = half**axes * average + axes * half ** (axes - 1) * number / 2 * noise
        noisy += made.empty / 2**axes / (1 / variance(boxes.scale) + 1 / noise)
        width = made.width / parts
        cut = 0.0 if width <= point else min(1.0, width / spread) * self.setting.params.records
        return math.sqrt(noisy + (_UNEVEN * cut) ** 2)

    def _laplaces(self, share: float) -> tuple[Laplace, Laplace, Laplace]:
        epsilon, change = share * self.setting.budget.epsilon, self.setting.neighbors.histogram().l1
        names = ("rough counts of boxes", "counts of boxes", "counts of cells")
        sizes, boxes, cells = (
            Laplace.of(what, part * epsilon, change) for what, part in zip(names, self.parts, strict=True)
        )
        return sizes, boxes, cells

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(extent + 1 for extent in self.setting.grid.extents)

    def _most(self, of_any: int) -> int:
        """Return how many boxes or cells there are at most: each holds a point of the domain."""
        return min(of_any, math.prod(self._sizes))

    @abstractmethod
    def _boxes(self, share: float) -> Charged:
        """Return the round that makes boxes."""

    @abstractmethod
    def _made(self, spread: float, share: float) -> Made:
        """Return what boxes it makes of evenly spread records."""


class AdaptiveGrid(_BoxesAndCells):
    """Equal boxes (the adaptive grid of Qardaji, Yang and Li, ICDE 2013), whose cells have fresh noise.

    As published, one count of a box decides on its cells and is averaged with them. Here another count
    decides, so that all noise that errors are computed from is independent of boxes and cells.
    """

    name: ClassVar[str] = "grid"
    parts: ClassVar[tuple[float, float, float]] = (0.1, 0.4, 0.48)

    def _boxes(self, share: float) -> EqualBoxes:
        setting = self.setting
        left = share * setting.budget.epsilon * (1 - sum(self.parts))
        public = setting.neighbors.name == "replace_one"
        total = None if public else Laplace.of("number of rows", left, setting.neighbors.count())
        return EqualBoxes(self._sizes, total, self._epsilon(share))

    def _epsilon(self, share: float) -> float:
        return share * self.setting.budget.epsilon / self.setting.neighbors.changes

    def _made(self, spread: float, share: float) -> Made:
        records, axes = self.setting.params.records, self.setting.grid.dimension
        most = boxes_of_axis(records, self._epsilon(share), axes)
        boxes = max(1.0, most * spread)
        return Made(boxes, 1 / most, records / boxes**axes, most**axes - boxes**axes)


class Tree(_BoxesAndCells):
    """Boxes by noisy halvings: a k-d tree with public splits (PrivTree: Zhang, Xiao and Xie, SIGMOD 2016)."""

    name: ClassVar[str] = "tree"
    parts: ClassVar[tuple[float, float, float]] = (0.1, 0.3, 0.4)

    _records: ClassVar[float] = 30.0  # times epsilon: records from which a box is halved; set on made-up data

    def _boxes(self, share: float) -> HalvedBoxes:
        neighbors, epsilon = self.setting.neighbors, share * self.setting.budget.epsilon
        splits = Splits.of("boxes", (1 - sum(self.parts)) * epsilon, neighbors.changes)
        return HalvedBoxes(Halved.of(self._sizes), splits, self._threshold(share))

    def _threshold(self, share: float) -> int:
        epsilon = share * self.setting.budget.epsilon / self.setting.neighbors.changes
        return math.ceil(self._records / epsilon)

    def _made(self, spread: float, share: float) -> Made:
        records, axes = self.setting.params.records, self.setting.grid.dimension
        each = max(0.75 * self._threshold(share), records * spread**-axes / MOST_CELLS)
        boxes = min(max(1.0, (records / each) ** (1 / axes)), spread * min(self._sizes))
        halved = axes * math.log2(1 / spread)  # until records fill a box; each time the other half is empty
        return Made(boxes, spread / boxes, min(each, records), halved)
