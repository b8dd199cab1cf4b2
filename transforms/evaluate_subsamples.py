"""Evaluate a function on disjoint subsamples; the answers are the records of the rounds."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
import numpy as np
from apache_beam.typehints.decorators import no_annotations

from core.errors import add_mark
from core.rounds import Block
from transforms.bound_groups import CHOSEN, SHARDS, OwnedRows, split_kept, split_owners
from transforms.count_done import count_done
from transforms.gather_parts import GatherParts
from transforms.open_source import InputError, Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import list_row_groups
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.split_units import Shard, Splitting, gather, split_rows

Answer = tuple[int, tuple[int, ...] | None]
"""The number of a subsample, and its answer in grid steps; None where the function failed."""

_LABEL = "Evaluating subsamples"

ANSWERED = "answer blocks"
"""The step that counts subsamples; see `count_done`."""


@dataclass(frozen=True)
class AnswerReader:
    """Read an `Answer` as one record, whose identity is the number of its subsample, or as none.

    Args:
        dimension: number of values of an answer.
    """

    dimension: int

    def blocks(self, element: Answer) -> Iterator[Block]:
        """Return a block of the one record, or without a record."""
        number, point = element
        known = [] if point is None else [point]
        points = np.array(known, dtype=np.int64).reshape(len(known), self.dimension)
        yield Block(points, np.full(len(known), number, dtype=np.uint64))


@dataclass(frozen=True)
class AnswersOfGroups:
    """Read an `Answer` as a record of its group, or as none; see `transforms.records.RecordsOfQuestions`.

    An element is one of its group alone. Every group has as many as it has subsamples.

    Args:
        dimension: number of values of an answer.
        subsamples: of each group.
    """

    dimension: int
    subsamples: int

    def blocks_of(self, element: Answer, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """Return the block of the group, if it is due. The identity is the number within the group."""
        group, number = divmod(element[0], self.subsamples)
        if group in due:
            yield from ((group, block) for block in AnswerReader(self.dimension).blocks((number, element[1])))


@dataclasses.dataclass
class EvaluateSubsamples(beam.PTransform):
    """Split the rows into subsamples and evaluate `function` on each.

    Every subsample has one answer, which is None without rows. So adding or removing a unit changes one
    answer, and replacing a unit changes at most two. With groups, it changes one answer of each of the groups
    that the unit keeps, which are at most `splitting.groups`.

    Rows are gathered as Arrow streams; see `GatherParts`. The number of elements does not depend on which
    subsamples have rows. The answers are materialized, so that every reader sees the same answer of a
    randomized function.

    Args:
        splitting: how rows become subsamples.
        function: the function.
    """

    splitting: Splitting
    function: Function

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one `Answer` per subsample."""
        return (
            self._gathered(descriptors)
            | "Evaluate" >> beam.ParDo(_Evaluate(self.splitting, self.function))
            | "Keep" >> beam.Reshuffle()
        )

    def _gathered(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Return the parts of subsamples. Where units may be in several groups, their rows meet before."""
        splitting = self.splitting
        if not splitting.chooses_groups:
            return descriptors | "Gather" >> GatherParts(
                partial(split_rows, splitting), splitting.shards, _LABEL
            )
        owned = descriptors | "Owners" >> GatherParts(partial(split_owners, splitting), SHARDS, _LABEL)
        return owned | "Gather" >> GatherParts(
            partial(split_kept, splitting), splitting.shards, _LABEL, CHOSEN
        )


class _Evaluate(beam.DoFn):
    """Evaluate with one forking process per worker thread."""

    def __init__(self, splitting: Splitting, function: Function) -> None:
        self.splitting, self.function = splitting, function

    def setup(self) -> None:
        try:
            self.runner = FunctionRunner(self.function)
        except FunctionError as error:
            raise add_mark(InputError(str(error))) from None

    @no_annotations
    def process(self, gathered: tuple[int, list[Shard]]) -> Iterator[Answer]:
        with plain_errors(_LABEL):
            yield from _answers(self.splitting, self.runner, *gathered)

    def teardown(self) -> None:
        self.runner.close()


def _answers(
    splitting: Splitting, runner: FunctionRunner, part: int, shards: Iterable[Shard]
) -> Iterator[Answer]:
    for number, rows in gather(splitting, part, shards):
        answer = runner.run(rows)
        count_done(ANSWERED)
        yield number, None if answer is None else tuple(answer.tolist())


def evaluate_in_memory(source: Source, splitting: Splitting, function: Function) -> Iterator[Block]:
    """Evaluate all subsamples of the source in this process: the in-memory version of `EvaluateSubsamples`.

    Raises:
        FunctionError: the function cannot be imported.
    """
    gathered: dict[int, list[Shard]] = {part: [] for part in range(splitting.shards)}
    for part, shard in _shards(source, splitting):
        gathered[part].append(shard)
    with FunctionRunner(function) as runner:
        for part, shards in gathered.items():
            for answer in _answers(splitting, runner, part, shards):
                yield from AnswerReader(function.grid.dimension).blocks(answer)


def _shards(source: Source, splitting: Splitting) -> Iterator[tuple[int, Shard]]:
    descriptors = [each for file in source.files for each in list_row_groups(file)]
    if not splitting.chooses_groups:
        for descriptor in descriptors:
            yield from split_rows(splitting, descriptor)
        return
    owned: dict[int, list[OwnedRows]] = {number: [] for number in range(SHARDS)}
    for descriptor in descriptors:
        for number, piece in split_owners(splitting, descriptor):
            owned[number].append(piece)
    for gathered in owned.items():
        yield from split_kept(splitting, gathered)
