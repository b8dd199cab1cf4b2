"""A task as a fixed number of rounds: one pass over the data and one private release each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from core.domain import Points
from core.noise import Noise
from core.stored import InMemory, Store, Stored

State = Any
"""Public value handed from round to round: private outputs and public parameters only."""


@dataclass(frozen=True)
class Block:
    """Some records of the database, as grid points.

    Args:
        points: shape (n, d), int64 grid steps.
        ids: shape (n,), uint64, the identity of each record (its unit, or its file and row);
            never its content, so that equal records are sampled independently.
        outside: shape (2 d,), int64: how many rows were left out because of each column, then how many were
            moved to a bound of each column; with units, how many units have such a row. None where there are
            none, or where this is not counted. Before a block is split by groups: shape (groups, 2 d).
        groups: shape (n,), int64, the group of each record, as an index of `labels`; None where the job has
            no groups. Where a unit may have several records, all of them are in one block.
        labels: shape (groups,), bytes: the canonical JSON of the key values of each group, as UTF-8.
    """

    points: Points
    ids: NDArray[np.uint64]
    outside: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None
    labels: NDArray[np.bytes_] | None = None


class Examination(Protocol):
    """How workers find the little that a release needs in a large merged aggregate.

    All of it is pure, integer and order-free, as an aggregate is, so what is found is the same bit for bit
    for any number of examiners.
    """

    @property
    def examiners(self) -> int:
        """How many workers examine the aggregate side by side; public."""

    @property
    def shards(self) -> int:
        """In how many parts the aggregate is merged, by its `split`, which it needs from 2 on; public."""

    def arrange(self, aggregate: Stored, store: Store) -> Any:
        """Put the merged aggregate in the form that is examined: on one worker, which sends it to all.

        Args:
            aggregate: its parts.
            store: where parts of the form may wait.
        """

    def examine(self, arranged: Any, part: int) -> Any:
        """Return what one of the examiners finds, from 0 on: an aggregate. Findings are merged with `+`."""


class Round(Protocol):
    """One pass over the data and one private release.

    Each round names its own kind of `core.aggregate.Aggregate` and of state.
    `floor` is None where the aggregate is small or merged at once. Otherwise the aggregate is `Counts`: it is
    merged in shards by key, and only what exceeds the floor, max(0, count - floor), reaches `release`.

    A round may also have an `examination`. Its merged aggregate stays with workers, and only what they find
    in it reaches `release`.
    """

    @property
    def name(self) -> str:
        """Short public name, unique within the task."""

    @property
    def purpose(self) -> str:
        """What the round finds out, as a phrase."""

    @property
    def floor(self) -> int | None:
        """Clipping floor of a large sparse aggregate."""

    def summarize(self, block: Block, state: State) -> Any:
        """Aggregate one block on a worker: pure, integer, order-free."""

    def release(self, aggregate: Any, state: State, noise: Noise) -> State:
        """Turn the merged aggregate into the next public state, privately; never raises on data."""


class RoundInParts(Round, Protocol):
    """The last round of a task, whose release no process needs to hold as a whole.

    Its aggregate is split by key into `parts` shards; see `core.aggregate.Counts.split`. Each shard is
    released by itself. `release` does the same to all shards in one process, and joins what it gets.
    """

    @property
    def parts(self) -> int:
        """How many parts there are, empty ones too: a public number. 1 where the round is like any other."""

    def release_part(self, number: int, aggregate: Any, state: State, noise: Noise) -> State:
        """Release the shard `number`, from 0 on, like `release`."""


class RoundInSections(Round, Protocol):
    """A round whose aggregate no process holds as a whole, although its release needs all of it.

    The merged aggregate is split by key into sections; see `core.sections.Sectioned.split`. Workers examine
    one section each, and only what sections have to say, merged with `+`, reaches `release`.
    """

    @property
    def sections(self) -> int:
        """Most sections: a public number. 0 where the round is like any other."""

    def examine(self, section: Any, state: State, noise: Noise, store: Store) -> Any:
        """Return what a section has to say: an aggregate.

        It may be random. It is never released but through what `release` draws. If it is large, it waits in
        the store, and `release` reads one section at a time; see `core.stored.Stored`.
        """


def sections_of(round_: Round) -> int:
    """Return in how many sections a round is examined at most: 0 unless it is a `RoundInSections`."""
    return int(getattr(round_, "sections", 0))


def parts_of(round_: Round) -> int:
    """Return in how many parts a round is released: 1 unless it is a `RoundInParts`."""
    return int(cast(RoundInParts, round_).parts) if hasattr(round_, "release_part") else 1


class Looking(Round, Protocol):
    """A round that passes over the data several times before it releases, to find where to count finely.

    What a look finds is as secret as the records; see `core.focus`. It is held by a copy of the round, which
    goes to the workers of the next pass.
    """

    @property
    def looks(self) -> int:
        """Number of passes before the last one; it follows from public parameters."""

    def coarse(self, state: State) -> Self:
        """Return the round for the first look."""

    def finer(self, aggregate: Any, state: State) -> Self:
        """Return the round for the next pass, given what this one counted; draws nothing."""


def looks_of(round_: Round) -> int:
    """Return how often a round passes over the data before its last pass."""
    return int(getattr(round_, "looks", 0))


def number_of_passes(rounds: Iterable[Round]) -> int:
    """Return how often some rounds pass over the data."""
    return sum(1 + looks_of(each) for each in rounds)


def shared_passes(strands: Sequence["Strand"]) -> int:
    """Return how often strands side by side pass over the data."""
    return sum(max(number_of_passes(strands[each].rounds) for each in group) for group in sharing(strands))


def sharing(strands: Sequence["Strand"]) -> list[list[int]]:
    """Return which strands share their passes, by number: all but those that have an examination."""
    alone = [number for number, strand in enumerate(strands) if any(map(examination_of, strand.rounds))]
    together = [number for number in range(len(strands)) if number not in alone]
    return [group for group in (together, *([number] for number in alone)) if group]


def examination_of(round_: Round) -> Examination | None:
    """Return how workers examine the merged aggregate of a round; None where it reaches `release` itself."""
    found: Examination | None = getattr(round_, "examination", None)
    return found


def examined(round_: Round, aggregate: Any, state: State = None, noise: Noise | None = None) -> Any:
    """Return what the release of a round gets of its merged aggregate.

    Args:
        round_: the round.
        aggregate: of all records.
        state: before the round; a `RoundInSections` alone needs it.
        noise: where sections get their randomness; a `RoundInSections` alone needs it.
    """
    if sections_of(round_) and noise is not None:
        step = cast(RoundInSections, round_)
        sections, store = aggregate.split(step.sections), InMemory()
        return total_of(step.examine(section, state, noise, store) for section in sections)
    examination = examination_of(round_)
    if examination is None:
        return _clipped(round_, aggregate)
    store = InMemory()
    shards = [aggregate] if examination.shards == 1 else aggregate.split(examination.shards)
    arranged = examination.arrange(total_of(Stored.of(shard, store) for shard in shards), store)
    return total_of(examination.examine(arranged, part) for part in range(examination.examiners))


def run_in_memory(rounds: Sequence[Round], blocks: Iterable[Block], start: State, noise: Noise) -> State:
    """Run `rounds` over `blocks` in this process: the twin of the Beam transform `RunRounds`.

    Args:
        rounds: the rounds of a task, in order.
        blocks: at least one block; a database without records is one empty block.
        start: the state before the first round.
        noise: where randomness comes from.

    Returns:
        The state after the last round.
    """
    blocks = list(blocks)
    state = start
    for round_ in rounds:
        state = round_.release(total_in_memory(round_, blocks, state, noise), state, noise)
    return state


@dataclass(frozen=True)
class Strand:
    """The rounds of one question, which run beside those of other questions.

    Args:
        rounds: the rounds, in order.
        start: the state before the first round.
    """

    rounds: tuple[Round, ...]
    start: State


def run_strands_in_memory(
    strands: Sequence[Strand], blocks: Sequence[Iterable[Block]], noise: Noise
) -> list[State]:
    """Run several strands in this process, each over its own records: the twin of `RunStrands`.

    Args:
        strands: the strands.
        blocks: the records of each strand, at least one block.
        noise: where randomness comes from.

    Returns:
        The state of each strand after its last round.
    """
    return [
        run_in_memory(strand.rounds, its, strand.start, noise)
        for strand, its in zip(strands, blocks, strict=True)
    ]


def total_in_memory(round_: Round, blocks: Iterable[Block], state: State, noise: Noise | None = None) -> Any:
    """Return what reaches a round's release, after its looks and its examination; see `examined`.

    Args:
        round_: the round.
        blocks: at least one; they are iterated once for each pass.
        state: before the round.
        noise: see `examined`.
    """
    step, total = _looked(round_, lambda each: _total(each, blocks, state), state)
    return examined(step, total, state, noise)


def recounts(round_: Round) -> bool:
    """Return whether stored counts of one axis serve a round in place of records: `total_of_stored`."""
    return hasattr(round_, "recount")


def total_of_stored(round_: Round, counts: Stored, state: State) -> Any:
    """Return what reaches a round's release if the records are those of stored counts of one axis.

    Args:
        round_: one with `recount`, which makes of counts and a state what `summarize` makes of a block of
            these records; a `RoundInSections` gets the counts of its sections as they are stored.
        counts: by grid point.
        state: before the round.
    """
    step, total = _looked(round_, lambda each: each.recount(counts, state), state)
    return total if sections_of(step) else examined(step, total, state)


def run_on_stored(rounds: Iterable[Round], counts: Stored, start: State, noise: Noise) -> State:
    """Run rounds that have `recount` on stored counts of one axis; see `run_in_memory`."""
    state = start
    for round_ in rounds:
        state = round_.release(total_of_stored(round_, counts, state), state, noise)
    return state


def _looked(round_: Round, count: Callable[[Any], Any], state: State) -> tuple[Any, Any]:
    """Return a round after its looks, and what its last pass counts."""
    step: Any = round_
    if looks_of(round_):
        step = step.coarse(state)
    for _ in range(looks_of(round_)):
        step = step.finer(_clipped(step, count(step)), state)
    return step, count(step)


def total_of(aggregates: Iterable[Any]) -> Any:
    """Return the sum of aggregates, at least one."""
    return reduce(lambda a, b: a + b, aggregates)


def _total(round_: Round, blocks: Iterable[Block], state: State) -> Any:
    return total_of(round_.summarize(block, state) for block in blocks)


def _clipped(round_: Round, aggregate: Any) -> Any:
    return aggregate if round_.floor is None else aggregate.above(round_.floor)
