"""What every round of a pipeline needs: how elements become records, and states that bear a mark."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from core.held import held_by as counts_held_by
from core.rounds import Block, Round, State
from transforms.plain_errors import RoundError
from transforms.spill import Spilled

LARGE_IN_A_TURN = 3
"""Questions with large aggregates that share a turn, at most; see `turns_of`."""

_LARGE = 1 << 17
"""Counts above which an aggregate is large."""


class Records(Protocol):
    """How elements become records."""

    def blocks(self, element: Any) -> Iterator[Block]:
        """Return the records of an element in blocks; every call returns the same records."""


class RecordsOfQuestions(Protocol):
    """How elements become the records of several questions."""

    def blocks_of(self, element: Any, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Return the records of an element for each question of `due` that it has records of.

        There is at least one block of each such question, even without records.
        """


def turns_of(rounds: Mapping[int, Round], questions: Sequence[int]) -> list[list[int]]:
    """Divide the strands of a pass into turns, in which a worker reads an element, one after the other.

    A worker holds what it makes of a turn until it has read all of the element. So few questions whose
    aggregates may be large share a turn, and this memory does not grow with the number of questions. Strands
    of one question share a turn: they are of its groups, and each record is in one group at most.

    Args:
        rounds: of each strand that is due, by its number, in order.
        questions: the question of every strand, due or not, those of one question together.
    """
    turns: list[list[int]] = [[]]
    large: set[int] = set()
    for number, round_ in rounds.items():
        held, question = counts_held_by([round_]), questions[number]
        if question not in large and (held.counts > _LARGE or held.growing):
            if len(large) == LARGE_IN_A_TURN:
                large = set()
                turns.append([])
            large.add(question)
        turns[-1].append(number)
    return turns


@dataclass(frozen=True)
class OneQuestion:
    """The records of one question, which has the number 0."""

    reader: Records

    def blocks_of(self, element: Any, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `RecordsOfQuestions.blocks_of`."""
        return ((0, block) for block in self.reader.blocks(element))


@dataclass(frozen=True)
class Drawn:
    """A state with a random mark of the call that drew it.

    Args:
        state: returned by a release, or the start.
        mark: 16 random bytes for each call of the release; empty for the start.
    """

    state: State
    mark: bytes = b""


def check_marks(one: bytes, other: bytes) -> None:
    """Check that two marks are of one draw.

    Workers and the private stage read the state separately. If an engine recomputes a lost state, they could
    read different draws of it. The marks then differ, and nothing is released.

    Raises:
        RoundError: they are of two.
    """
    if one != other:
        raise RoundError("The engine gave two different draws of one state to the workers of a round.")


@dataclass(frozen=True)
class Held:
    """What a strand has between two passes.

    Args:
        drawn: the public state.
        closer: the copy of the round that summarizes in the next pass, where it is a `Looking`: as secret as
            the records. None for other rounds.
    """

    drawn: Drawn
    closer: Round | None = None


Kept = list[tuple[int, Held | Spilled]]
"""Of each strand its number and what it has, which waits in a file where one process runs the steps.

A runner of one process would hold several copies of a large state, and each of its threads another one.
"""


def held_by(kept: Kept, strands: Iterable[int]) -> dict[int, Held]:
    """Return what some strands have. What waits in a file is one object for all threads, until `dropped`.

    Raises:
        RoundError: a strand has two states.
    """
    pieces = by_strand(kept)
    return {number: _shared(pieces[number]) for number in strands}


def by_strand(kept: Kept) -> dict[int, Held | Spilled]:
    """Return what each strand has, or where it waits.

    Raises:
        RoundError: a strand has two states.
    """
    pieces = dict(kept)
    if len(pieces) < len(kept):
        raise RoundError("The engine gave two states of one question to a pass.")
    return pieces


def _shared(its: Held | Spilled) -> Held:
    return cast(Held, its.spill.share(its.kept, hold=True)) if isinstance(its, Spilled) else its


def dropped(kept: Kept, strand: int) -> None:
    """Hold no longer what a strand has: its pass is over. Whoever still needs it reads it again."""
    its = by_strand(kept)[strand]
    if isinstance(its, Spilled):
        its.spill.drop(its.kept)
