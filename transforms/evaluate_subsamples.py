"""Evaluate a function on disjoint subsamples; the answers are the records of the rounds."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
import numpy as np
from apache_beam.typehints.decorators import no_annotations

from core.errors import add_mark
from core.rounds import Block
from transforms.gather_parts import GatherParts
from transforms.open_source import InputError, Source
from transforms.plain_errors import plain_errors
from transforms.read_blocks import list_row_groups
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.split_units import Shard, Splitting, gather, split_rows

Answer = tuple[int, tuple[int, ...] | None]
"""The number of a subsample, and its answer in grid steps; None where the function failed."""

_LABEL = "Evaluating subsamples"


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


@dataclasses.dataclass
class EvaluateSubsamples(beam.PTransform):
    """Split the rows into subsamples and evaluate `function` on each.

    Every subsample has one answer, which is None without rows. So adding or removing a unit changes one
    answer, and replacing a unit changes at most two. Rows are gathered as Arrow streams; see `GatherParts`.
    The number of elements does not depend on which subsamples have rows. The answers are materialized, so
    that every reader sees the same answer of a randomized function.

    Args:
        splitting: how rows become subsamples.
        function: the function.
    """

    splitting: Splitting
    function: Function

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        """Take the descriptors of `ReadBlocks`; return one `Answer` per subsample."""
        return (
            descriptors
            | "Gather" >> GatherParts(partial(split_rows, self.splitting), self.splitting.shards, _LABEL)
            | "Evaluate" >> beam.ParDo(_Evaluate(self.splitting, self.function))
            | "Keep" >> beam.Reshuffle()
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
        yield number, None if answer is None else tuple(answer.tolist())


def evaluate_in_memory(source: Source, splitting: Splitting, function: Function) -> Iterator[Block]:
    """Evaluate all subsamples of the source in this process: the in-memory version of `EvaluateSubsamples`.

    Raises:
        FunctionError: the function cannot be imported.
    """
    gathered: dict[int, list[Shard]] = {part: [] for part in range(splitting.shards)}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for part, shard in split_rows(splitting, descriptor):
                gathered[part].append(shard)
    with FunctionRunner(function) as runner:
        for part, shards in gathered.items():
            for answer in _answers(splitting, runner, part, shards):
                yield from AnswerReader(function.grid.dimension).blocks(answer)
