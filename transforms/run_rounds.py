"""Run the rounds of a task as one Beam pipeline: each is one pass over the data and one private release."""

import dataclasses
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.noise import Noise
from core.rounds import Block, Examination, Round, State, examination_of
from transforms.plain_errors import RoundError, plain_errors
from transforms.spill import Spill

_MERGING = "Merging"
"""What the steps between workers and the private stage are called where they fail."""

_EXAMINING = "Examining"
"""What the steps that examine a merged aggregate are called where they fail."""

Sums = list[tuple[int, Any]]
"""Pairs of a number of aggregates and their sum, in descending order of the number."""


class Records(Protocol):
    """How elements become records."""

    def blocks(self, element: Any) -> Iterator[Block]:
        """Return the records of an element in blocks; every call returns the same records."""


@dataclass(frozen=True)
class Drawn:
    """A state with a random mark of the call that drew it.

    Args:
        state: returned by a release, or the start.
        mark: 16 random bytes for each call of the release; empty for the start.
    """

    state: State
    mark: bytes = b""


@dataclass(frozen=True)
class Made:
    """An aggregate with the mark of the state from which it was made.

    Workers and the private stage read the state separately. If an engine recomputes a lost state, they could
    read different draws of it. The marks then differ, and nothing is released.

    Args:
        aggregate: of the records of some workers.
        mark: see `Drawn`.
    """

    aggregate: Any
    mark: bytes

    def __add__(self, other: "Made") -> "Made":
        _check_marks(self.mark, other.mark)
        return Made(self.aggregate + other.aggregate, self.mark)


def _check_marks(one: bytes, other: bytes) -> None:
    if one != other:
        raise RoundError("The engine gave two different draws of one state to the workers of a round.")


@dataclasses.dataclass
class RunRounds(beam.PTransform):
    """Run `rounds` in order: the Beam version of `core.rounds.run_in_memory`.

    Args:
        rounds: the rounds of a task; their names label the steps.
        start: public state before the first round.
        noise: source of randomness; it is sent to the worker that releases.
        reader: how elements become records, such as `Reader` for descriptors and `AnswerReader` for answers.
        shards: number of shards in which a large sparse aggregate is merged.
    """

    rounds: Sequence[Round]
    start: State
    noise: Noise
    reader: Records
    shards: int = 16

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return one element, the state after the last round."""
        drawn = elements.pipeline | "Start" >> beam.Create([Drawn(self.start)], reshuffle=False)
        for round_ in self.rounds:
            drawn = elements | round_.name >> RunRound(round_, drawn, self.noise, self.reader, self.shards)
        return drawn | "Last" >> beam.Map(lambda last: last.state)


@dataclasses.dataclass
class RunRound(beam.PTransform):
    """Run one round.

    Noise is drawn in a separate step, followed by a Reshuffle. A consumer that is retried then reads the same
    value and draws no other noise.

    The numbers of elements between steps depend on the number of descriptors, but not on their rows, because
    engines publish the numbers of elements.
    """

    round_: Round
    drawn: beam.PCollection
    noise: Noise
    reader: Records
    shards: int

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return one element, the `Drawn` state after this round."""
        drawn = beam.pvalue.AsSingleton(self.drawn)
        aggregates = elements | "Summarize" >> beam.Map(_summarize, self.reader, self.round_, drawn)
        floor = self.round_.floor
        examination = examination_of(self.round_)
        if examination is not None:
            merged = aggregates | "Merge" >> _MergeAndExamine(examination)
        else:
            merge = _MergeAll() if floor is None else _MergeShards(floor, self.shards)
            merged = aggregates | "Merge" >> merge
        return (
            merged
            | "Release" >> beam.Map(_release, self.round_, drawn, self.noise)
            | "Keep" >> beam.Reshuffle()
        )


@dataclasses.dataclass
class _MergeAll(beam.PTransform):
    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        return aggregates | beam.CombineGlobally(_Sum()).without_defaults()


@dataclasses.dataclass
class _MergeShards(beam.PTransform):
    """Merge sparse counts by shard, and concatenate the counts that exceed the floor."""

    floor: int
    shards: int

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        return (
            aggregates
            | "Split" >> beam.FlatMap(_split, self.shards)
            | "MergeShard" >> beam.CombinePerKey(_Sum())
            | "Clip" >> beam.Map(_clip, self.floor)
            | "Concatenate" >> beam.CombineGlobally(_Sum()).without_defaults()
        )


@dataclasses.dataclass
class _MergeAndExamine(beam.PTransform):
    """Merge large aggregates, and examine the sum in parts, which are always there.

    See `core.rounds.Examination`. Between the steps, aggregates wait in a file where the whole pipeline runs
    in this process, because its runner would hold several copies of them.
    """

    examination: Examination

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        arranged = (
            aggregates
            | "MergeLarge" >> beam.CombineGlobally(_SpilledSum(self.spill)).without_defaults()
            | "Arrange" >> beam.Map(_arrange, self.examination, self.spill)
        )
        return (
            aggregates.pipeline
            | "Parts" >> beam.Create(range(self.examination.parts))
            | "Examine" >> beam.Map(_examine, self.examination, self.spill, beam.pvalue.AsSingleton(arranged))
            | "Gather" >> _MergeAll()
        )


class _Sum(beam.CombineFn):
    """Add at least one aggregate.

    The accumulator is a list of (number of summands, sum) in descending order of the numbers. Sums of similar
    numbers are added, so that merging n sparse aggregates takes n log n time instead of n^2.
    """

    def create_accumulator(self) -> Sums:
        return []

    @no_annotations  # Beam would use protocols as type hints
    def add_input(self, accumulator: Sums, aggregate: Any, summands: int = 1) -> Sums:
        with plain_errors(_MERGING):
            while accumulator and accumulator[-1][0] <= summands:
                more, total = accumulator.pop()
                summands, aggregate = summands + more, total + aggregate
        accumulator.append((summands, aggregate))
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            for summands, total in accumulator:
                self.add_input(merged, total, summands)
        return merged

    def compact(self, accumulator: Sums) -> Sums:
        return [(sum(n for n, _ in accumulator), self.extract_output(accumulator))]

    @no_annotations
    def extract_output(self, accumulator: Sums) -> Any:
        with plain_errors(_MERGING):
            return reduce(lambda a, b: a + b, (total for _, total in reversed(accumulator)))


class _SpilledSum(_Sum):
    """Add aggregates as `_Sum` does. Its accumulators wait in a file before they are merged."""

    def __init__(self, spill: Spill) -> None:
        self.spill = spill

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            for summands, total in accumulator:
                with plain_errors(_MERGING):
                    total = self.spill.get(total)
                self.add_input(merged, total, summands)
        return merged

    def compact(self, accumulator: Sums) -> Sums:
        ((summands, total),) = super().compact(self.merge_accumulators([accumulator]))
        with plain_errors(_MERGING):
            return [(summands, self.spill.put(total))]

    @no_annotations
    def extract_output(self, accumulator: Sums) -> Any:
        return super().extract_output([(n, self.spill.get(total)) for n, total in accumulator])


@no_annotations
def _summarize(element: Any, reader: Records, round_: Round, drawn: Drawn) -> Made:
    with plain_errors(f"Round {round_.name}"):
        tree = _Sum()
        total = tree.create_accumulator()
        for block in reader.blocks(element):
            total = tree.add_input(total, round_.summarize(block, drawn.state))
        return Made(tree.extract_output(total), drawn.mark)


@no_annotations
def _split(made: Made, shards: int) -> list[tuple[int, Made]]:
    with plain_errors(_MERGING):
        return [(shard, Made(counts, made.mark)) for shard, counts in enumerate(made.aggregate.split(shards))]


@no_annotations
def _clip(shard: tuple[int, Made], floor: int) -> Made:
    with plain_errors(_MERGING):
        return Made(shard[1].aggregate.above(floor), shard[1].mark)


@no_annotations
def _arrange(made: Made, examination: Examination, spill: Spill) -> Any:
    with plain_errors(_EXAMINING):
        return spill.put(Made(examination.arrange(made.aggregate), made.mark))


@no_annotations
def _examine(part: int, examination: Examination, spill: Spill, kept: Any) -> Made:
    with plain_errors(_EXAMINING):
        arranged = spill.share(kept)
        return Made(examination.examine(arranged.aggregate, part), arranged.mark)


@no_annotations
def _release(made: Made, round_: Round, drawn: Drawn, noise: Noise) -> Drawn:
    with plain_errors(f"Round {round_.name}"):
        _check_marks(made.mark, drawn.mark)
        return Drawn(round_.release(made.aggregate, drawn.state, noise), uuid.uuid4().bytes)
