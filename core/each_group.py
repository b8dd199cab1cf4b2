"""One question about one column of each group, in one pass over the records of all groups.

Rounds of an ordered task use only how many records there are at each grid point. So workers count the
distinct values of every group, once. They wait in sections, and no process holds more of them than a section,
or than the groups that are released together. The release runs the rounds of each group over its counts.

Privacy. Each group gets the rounds of its plan with noise of its own, and every aggregate is the one that the
records of the group would give. So what is released has the same distribution as if each group had a strand
of its own, and `core.groups` says what all groups spend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Ints, Tally
from core.focus import CELLS
from core.held import held_by
from core.input_checks import CheckedRound
from core.noise import Noise
from core.rounds import Block, Round, State, Strand, recounts, run_on_stored
from core.statistics.stored_totals import StoredTotals, TotalsInSections
from core.statistics.values import ValueCounts
from core.stored import SECTIONS, Store


@dataclass(frozen=True)
class EachGroup:
    """Run the rounds of a question about one column for each group; see the docstring of the module.

    Args:
        rounds: of each group, without checks; see `core.rounds.recounts`.
        start: the state of each group before its first round.
        checks: the round that counts what is left out or moved; None without checks.
        groups: number of groups, public.
        points: number of grid points.
    """

    rounds: tuple[Round, ...]
    start: State
    checks: CheckedRound | None
    groups: int
    points: int
    purpose: ClassVar[str] = "the answer of each group"
    name: str = "each_group"
    floor: None = None

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return max(min(CELLS, self.groups * self.points), held_by(self.rounds).counts)

    @property
    def sections(self) -> int:
        """See `core.rounds.RoundInSections`: none where all possible values are few."""
        return SECTIONS if self.groups * self.points > CELLS else 0

    @classmethod
    def of(cls, rounds: Sequence[Round], start: State, groups: int, points: int) -> "EachGroup | None":
        """Return the round that answers each group by these rounds; None where they need the records."""
        checks = rounds[0] if isinstance(rounds[0], CheckedRound) else None
        plain = tuple(step.round_ if isinstance(step, CheckedRound) else step for step in rounds)
        if not all(map(recounts, plain)):
            return None
        return cls(plain, start if checks is None else start.state, checks, groups, points)

    def summarize(self, block: Block, state: None) -> TotalsInSections:
        """Count the records at each point of each group, and what the checks count of each group."""
        groups = np.zeros(0, np.int64) if block.groups is None else block.groups
        outside = np.zeros((self.groups, self._columns), dtype=np.int64)
        if self.checks is not None and block.outside is not None:
            outside += block.outside
        held: NDArray[np.bool_] = np.bincount(groups, minlength=self.groups) + outside.sum(axis=1) > 0
        values = ValueCounts.of((np.cumsum(held) - 1)[groups], block.points[:, 0])
        return TotalsInSections(np.flatnonzero(held), outside[held], (values,))

    def examine(self, section: TotalsInSections, state: None, noise: Noise, store: Store) -> StoredTotals:
        """Store the values of a section; see `core.rounds.RoundInSections`."""
        return StoredTotals.of(section, store)

    def release(
        self, aggregate: TotalsInSections | StoredTotals, state: None, noise: Noise
    ) -> list[tuple[int, State]]:
        """Return of each group its number and its last state."""
        stored, numbers = StoredTotals.of(aggregate), np.arange(self.groups)
        outside: Ints = stored.totals.at(numbers)
        found: list[tuple[int, State]] = []
        for number, (counts,) in enumerate(stored.values(numbers)):
            last = run_on_stored(self.rounds, counts, self.start, noise)
            if self.checks is not None:
                last = self.checks.checked(last, Tally(outside[number]), noise)
            found.append((number, last))
        return found

    @property
    def _columns(self) -> int:
        return 0 if self.checks is None else 2


def strands_of(rounds: Sequence[Round], start: State, groups: int, points: int) -> list[Strand]:
    """Return the strands of a question: one; or one for each group, unless `EachGroup` answers them together.

    Args:
        rounds: of the question, or of each group.
        start: the state before the first of them.
        groups: number of groups; 0 where the question is asked about all records.
        points: number of grid points, if records are rows or units with one coordinate; else 0.
    """
    together = EachGroup.of(rounds, start, groups, points) if groups and points else None
    if together is not None:
        return [Strand((together,), None)]
    return [Strand(tuple(rounds), start)] * max(1, groups)


def in_one_pass(strands: Sequence[Strand]) -> bool:
    """Return whether all groups of a question are answered together; see `strands_of`."""
    return any(isinstance(round_, EachGroup) for strand in strands for round_ in strand.rounds)
