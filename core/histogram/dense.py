"""The dense histogram: noise on the count of every cell."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.aggregate import Counts
from core.draws import Charged, Draw, Laplace
from core.errors import InvalidValue
from core.histogram.cells import Cells
from core.histogram.constraints import Consistency
from core.histogram.found import Table
from core.histogram.method import CountCells
from core.noise import Noise
from core.rounds import Block
from core.task import Accuracy
from core.tightness import Tightness

_MOST = 1 << 22  # most cells that are all given noise


_REACHED = Tightness(
    "The promised error of the cells is reached on all rows: the noise does not depend on them.",
    reached=True,
)
_CONSISTENT = Tightness(
    "The promised error of the cells is twice that of the noise, because the counts are moved to keep the "
    "known ones. They rarely move in the direction of the largest noise by as much as that noise, so errors "
    "are usually about half of what is promised.",
    reached=False,
)
_NO_LARGER = Tightness(
    "The promised error of the cells is the largest known count, which no count of a cell exceeds, and noise "
    "may exceed it. Errors are as large where all rows of that count are in one cell, and noise hides it.",
    reached=False,
)


@dataclass(frozen=True)
class DenseHistogram:
    """Release the count of every cell.

    A record is in one cell. So the counts have L1 sensitivity 1 if a record is added or removed, and 2 if a
    record is replaced. Under a policy whose secret pairs never lie in two cells the sensitivity is 0, and the
    counts are released exactly. For known counts see `core.histogram.constraints`.

    Args:
        cells: the cells.
        count: noise of every count.
        consistency: known counts that the released table keeps, or None. It may be given only where the
            number of records is public.
    """

    cells: Cells
    count: Laplace
    consistency: Consistency | None = None
    purpose: ClassVar[str] = "how many records lie in each cell"
    dense: ClassVar[bool] = True
    floor: int = 0
    name: str = "histogram"

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return self.cells.number

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return (self.count,)

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by cell."""
        return Counts.of(self.cells.keys(block.points))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Table:
        """Release every cell's noisy count, as it is or made consistent."""
        exact = np.zeros(self.cells.number, dtype=np.int64)
        exact[aggregate.keys] = aggregate.counts
        counts = self.count.add(exact, noise)
        if self.consistency is not None:
            table = self.consistency.keep(counts.reshape(self.cells.shape), total=int(exact.sum()))
            counts = table.ravel()
        return Table(self.cells, np.arange(self.cells.number), counts)


class Dense(CountCells):
    """Every cell's count, with noise; the only method that keeps known counts."""

    name: ClassVar[str] = "dense"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.cells.number <= _MOST:
            return None
        return InvalidValue(
            "cells",
            self.setting.params.cells,
            f"dense takes at most {_MOST:,}",
            f"makes {self.cells.number:,} cells",
        )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        count = Laplace(what="cell counts", scale=self.scale, sensitivity=self.sensitivity)
        return (DenseHistogram(self.cells, count, self.consistency),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`; disjoint known counts double the promised error, see `Consistency.keep`.

        Cells of a region are not below 0 and add up to its known count, in truth and in the table that is
        kept. So no count of theirs is further off than that.
        """
        if self.consistency is None:
            return self.promised(self.error, None, {"cell_error": _REACHED})
        if not self.consistency.disjoint:
            return self.promised(None, None, {})
        error, most = 2 * self.error + 1, self.consistency.largest(self.cells.shape)
        if most is not None and most < error:
            return self.promised(most, None, {"cell_error": _NO_LARGER})
        return self.promised(error, None, {"cell_error": _CONSISTENT})
