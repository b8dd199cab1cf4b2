"""What both methods of the histogram have in common: cells, sensitivity, error and notes."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from core.histogram.cells import Cells, shape_of
from core.histogram.constraints import Consistency, constrained_sensitivity
from core.histogram.expected import expected_error
from core.histogram.found import Promises
from core.histogram.params import Histogram
from core.mechanisms.tails import largest_of, variance
from core.task import Accuracy, Method
from core.tightness import Tightness


class CountCells(Method[Histogram]):
    """A method with noise of scale sensitivity / epsilon on the counts of cells."""

    calibrated: ClassVar[bool] = False
    uses_policy: ClassVar[bool] = True

    @cached_property
    def cells(self) -> Cells:
        """The cells."""
        return Cells(self.setting.grid, shape_of(self.setting.params.cells, self.setting.grid))

    @cached_property
    def sensitivity(self) -> float:
        """L1 sensitivity of the counts."""
        neighbors = self.setting.neighbors
        if neighbors.policy is not None and neighbors.constraints:
            return constrained_sensitivity(neighbors.policy, self.cells.cuts, self.setting.grid.extents)
        if neighbors.policy is None and self.cells.number > 1:  # any two cells: no need to list them
            return neighbors.histogram().l1
        return neighbors.histogram(self.cells.cuts).l1

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return self.sensitivity / self.setting.budget.epsilon

    @property
    def error(self) -> int:
        """Bound on the noise of every cell at once."""
        return largest_of(self.cells.number, self.scale, self.setting.params.failure)

    @cached_property
    def consistency(self) -> Consistency | None:
        """The known counts that the table keeps; None where none are known."""
        known = self.setting.neighbors.constraints
        return Consistency.of(known, self.cells.cuts, self.setting.grid.extents) if known else None

    def promised(
        self,
        cell_error: int | None,
        released_from: int | None,
        tightness: Mapping[str, Tightness],
        *notes: str,
        threshold: int = 0,
    ) -> Accuracy:
        """Return what is promised, and the error by which methods are compared.

        Args:
            cell_error: see `Promises`.
            released_from: see `Promises`.
            tightness: of both.
            notes: see `Accuracy`.
            threshold: see `expected_error`.
        """
        noise = variance(self.scale)
        promises = Promises(cell_error, released_from, math.sqrt(noise))
        error = expected_error(self.cells.number, noise, threshold)
        free = (
            ()
            if self.sensitivity
            else ("No secret pair of the policy lies in two cells: the counts are exact and cost nothing.",)
        )
        return Accuracy(promises, error, (*free, *notes, *self._constraint_notes()), tightness=tightness)

    def _constraint_notes(self) -> tuple[str, ...]:
        policy = self.setting.neighbors.policy
        if policy is None or self.consistency is None:
            return ()
        which = (
            "any minimal set of changes that keeps the known counts and holds a secret pair"
            if policy.semantics == "literal"
            else "any minimal set of changes that keeps the known counts, where every change is a secret pair"
        )
        note = (
            f"Neighbors under the {len(policy.constraints)} known counts differ by {which}; "
            f"the counts then change by at most {self.sensitivity:.0f} in all. The known counts are "
            "taken as true."
        )
        if len(self.consistency.answers) == len({(known.low, known.high) for known in policy.constraints}):
            return (note,)
        return note, (
            "Known counts of boxes that are not made of whole cells may raise the noise, but the released "
            "table does not keep them."
        )
