"""Count in the first round of a task, beside its own aggregate, what the input had outside of the domain."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

import numpy as np

from core.aggregate import Tally
from core.budget import Budget, spend
from core.draws import Charged, Draw, Laplace, charged
from core.noise import Noise
from core.plan import Plan
from core.rounds import (
    Block,
    Examination,
    RoundInParts,
    State,
    examination_of,
    looks_of,
    parts_of,
    sections_of,
    total_of,
)
from core.stored import Store, Stored


@dataclass(frozen=True)
class Checked:
    """The state of a task with checks.

    Args:
        state: of the task.
        left_out: for each column, the noisy number of records that were left out because of it.
        moved: for each column, the noisy number of records that were moved to one of its bounds.
    """

    state: State
    left_out: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()


@dataclass(frozen=True)
class Beside:
    """The aggregate of a round, and beside it the counts of the checks, which no floor clips."""

    aggregate: Any
    outside: Tally

    def __add__(self, other: "Beside") -> "Beside":
        return Beside(self.aggregate + other.aggregate, self.outside + other.outside)

    def __len__(self) -> int:
        return len(self.aggregate)

    @classmethod
    def merged(cls, parts: Sequence["Beside"]) -> "Beside":
        """Add up any number at once, at least one, of sparse counts."""
        outside = reduce(lambda a, b: a + b, [part.outside for part in parts])
        return cls(type(parts[0].aggregate).merged([part.aggregate for part in parts]), outside)

    def above(self, floor: int) -> "Beside":
        """Clip the aggregate alone; see `core.aggregate.Counts.above`."""
        return Beside(self.aggregate.above(floor), self.outside)

    def split(self, shards: int) -> list["Beside"]:
        """Split the aggregate; the first part has the counts of the checks."""
        none = Tally(np.zeros_like(self.outside.totals))
        parts = self.aggregate.split(shards)
        return [Beside(part, none if number else self.outside) for number, part in enumerate(parts)]


@dataclass(frozen=True)
class ExaminedBeside:
    """The examination of a round's aggregate; the counts of the checks pass through its first part."""

    examination: Examination

    @property
    def examiners(self) -> int:
        """See `Examination.examiners`."""
        return self.examination.examiners

    @property
    def shards(self) -> int:
        """See `Examination.shards`."""
        return self.examination.shards

    def arrange(self, aggregate: Stored, store: Store) -> Beside:
        """See `Examination.arrange`."""
        apart, outside = store.another(), []
        stored = []
        for part in aggregate:
            stored.append(Stored.of(part.aggregate, apart))
            outside.append(part.outside)
        return Beside(self.examination.arrange(total_of(stored), store), total_of(outside))

    def examine(self, arranged: Beside, part: int) -> Beside:
        """See `Examination.examine`."""
        found = self.examination.examine(arranged.aggregate, part)
        return Beside(found, Tally(np.zeros_like(arranged.outside.totals)) if part else arranged.outside)


@dataclass(frozen=True)
class CheckedRound:
    """A round of a task with checks: the first one also counts, in the same pass.

    The counts are two for each column: records left out, and records moved to a bound; see the field
    `outside` of `core.rounds.Block`. What one record changes is stated in `with_checks`, which plans them.

    Args:
        round_: the round of the task.
        columns: number of columns d.
        count: the draw of all 2 d counts; None in later rounds.
    """

    round_: Charged
    columns: int
    count: Laplace | None

    @property
    def name(self) -> str:
        """See `Round.name`."""
        return self.round_.name

    @property
    def purpose(self) -> str:
        """See `Round.purpose`."""
        also = "" if self.count is None else "; and counts of what is left out or moved to a bound, by column"
        return f"{self.round_.purpose}{also}"

    @property
    def floor(self) -> int | None:
        """See `Round.floor`."""
        return self.round_.floor

    @property
    def parts(self) -> int:
        """See `RoundInParts.parts`."""
        return parts_of(self.round_)

    @property
    def examination(self) -> Examination | None:
        """See `Round`."""
        inner = examination_of(self.round_)
        return inner if inner is None or self.count is None else ExaminedBeside(inner)

    @property
    def sections(self) -> int:
        """See `core.rounds.RoundInSections`."""
        return sections_of(self.round_)

    def examine(self, section: Any, state: Checked, noise: Noise, store: Store) -> Any:
        """See `core.rounds.RoundInSections`; the first section has the counts of the checks."""
        round_ = cast(Any, self.round_)
        if self.count is None:
            return round_.examine(section, state.state, noise, store)
        return Beside(round_.examine(section.aggregate, state.state, noise, store), section.outside)

    def of_one_group(self) -> "CheckedRound":
        """See `core.statistics.by_group.TotalsByGroup.of_one_group`."""
        return replace(self, round_=cast(Any, self.round_).of_one_group())

    def draws(self) -> tuple[Draw, ...]:
        """See `Charged.draws`."""
        return self.round_.draws() if self.count is None else (*self.round_.draws(), self.count)

    def summarize(self, block: Block, state: Checked) -> Any:
        """See `Round.summarize`."""
        aggregate = self.round_.summarize(block, state.state)
        if self.count is None:
            return aggregate
        none = np.zeros(2 * self.columns, dtype=np.int64)
        return Beside(aggregate, Tally(none if block.outside is None else block.outside))

    @property
    def looks(self) -> int:
        """See `core.rounds.Looking.looks`."""
        return looks_of(self.round_)

    def coarse(self, state: Checked) -> "CheckedRound":
        """See `core.rounds.Looking.coarse`."""
        return replace(self, round_=cast(Any, self.round_).coarse(state.state))

    def finer(self, aggregate: Any, state: Checked) -> "CheckedRound":
        """See `core.rounds.Looking.finer`."""
        counted = aggregate if self.count is None else aggregate.aggregate
        return replace(self, round_=cast(Any, self.round_).finer(counted, state.state))

    def release(self, aggregate: Any, state: Checked, noise: Noise) -> Checked:
        """See `Round.release`."""
        if self.count is None:
            return replace(state, state=self.round_.release(aggregate, state.state, noise))
        after = self.round_.release(aggregate.aggregate, state.state, noise)
        return self.checked(after, aggregate.outside, noise)

    def release_part(self, number: int, aggregate: Any, state: Checked, noise: Noise) -> Checked:
        """See `RoundInParts.release_part`; the first part has the counts, see `Beside.split`."""
        round_ = cast(RoundInParts, self.round_)
        if self.count is None:
            return replace(state, state=round_.release_part(number, aggregate, state.state, noise))
        after = round_.release_part(number, aggregate.aggregate, state.state, noise)
        return Checked(after) if number else self.checked(after, aggregate.outside, noise)

    def checked(self, after: State, outside: Tally, noise: Noise) -> Checked:
        """Return a state of the task with the released counts, if this is the first round."""
        if self.count is None:
            return Checked(after)
        counts = [int(noisy) for noisy in self.count.add(outside.totals, noise)]
        return Checked(after, tuple(counts[: self.columns]), tuple(counts[self.columns :]))


def with_checks(plan: Plan, epsilon: float, columns: int, twice: bool, budget: Budget) -> Plan:
    """Return the plan of a task with checks for `epsilon`, counted in its first round.

    Sensitivity, in L1, of the 2 d counts together:

    - Without units, one row more is either left out or not. If it is, it adds 1 to the first count of each
      column in which it has no value. If not, it adds 1 to the second count of each column that moves it. So
      the counts change by at most d. A replaced row changes each of the 2 d counts by at most 1.
    - With units, a count is one of units that have such a row. A unit may have rows of both kinds. So whether
      a unit is added, removed or replaced, each of the 2 d counts changes by at most 1.

    The counts are (epsilon, 0)-private, so the plan spends at most `epsilon` more than before (basic
    composition). An accountant for all draws together may find less, or by its own rounding slightly more.

    Args:
        plan: what the rest of the budget pays for.
        epsilon: what the counts cost, on top.
        columns: number of columns d.
        twice: whether the counts may change by 2 d, not d: with units, or if a row is replaced.
        budget: of the whole.
    """
    l1 = 2 * columns if twice else columns
    count = Laplace.of("values left out or moved, by column", epsilon, l1)
    first, *later = plan.rounds
    rounds = (
        CheckedRound(first, columns, count),
        *(CheckedRound(step, columns, None) for step in later),
    )
    spent = min(plan.spend.plus(epsilon), spend(charged(rounds), budget.delta), key=lambda each: each.epsilon)
    return replace(plan, rounds=rounds, start=Checked(plan.start), spend=spent)
