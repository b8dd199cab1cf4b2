"""Run the rounds of a task as one Beam pipeline: each a pass over the data and one private release."""

import dataclasses
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.errors import add_mark
from core.noise import Noise
from core.rounds import Block, Round, State
from transforms.plain_errors import RoundError, plain_errors

_MERGING = "Merging"
"""What the steps between workers and the private stage are called where they fail."""

Sums = list[tuple[int, Any]]
"""How many aggregates were added, and their sum; several where few were added to many."""


class Records(Protocol):
    """How the elements that every round goes through become records."""

    def blocks(self, element: Any) -> Iterator[Block]:
        """Return the element's records in blocks, the same ones whenever it is asked."""


@dataclass(frozen=True)
class Drawn:
    """A state with a mark that no other draw of it has.

    Args:
        state: what a release returned, or the start.
        mark: 16 random bytes of that very call of the release; empty for the start.
    """

    state: State
    mark: bytes = b""


@dataclass(frozen=True)
class Made:
    """An aggregate with the mark of the state that it was made under.

    Workers and the private stage read the state separately. An engine that recovers a lost part could draw
    a state again and give each of them another one; then the mark tells, and nothing is released.

    Args:
        aggregate: what workers counted.
        mark: see `Drawn`.
    """

    aggregate: Any
    mark: bytes

    def __add__(self, other: "Made") -> "Made":
        _check_marks(self.mark, other.mark)
        return Made(self.aggregate + other.aggregate, self.mark)


def _check_marks(one: bytes, other: bytes) -> None:
    if one != other:
        raise add_mark(RoundError("The engine gave two draws of one state to the workers of a round."))


@dataclasses.dataclass
class RunRounds(beam.PTransform):
    """Run `rounds` in order: the Beam twin of `core.rounds.run_in_memory`.

    Args:
        rounds: the rounds of a task; their names label the steps.
        start: public state before the first round.
        noise: where randomness comes from; it travels to the worker that releases.
        reader: how an element becomes records: a descriptor by `Reader`, an answer by `AnswerReader`.
        shards: parts in which a large sparse aggregate is merged.
    """

    rounds: Sequence[Round]
    start: State
    noise: Noise
    reader: Records
    shards: int = 16

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take what `reader` knows, at least one; return one element, the state after the last round."""
        drawn = elements.pipeline | "Start" >> beam.Create([Drawn(self.start)], reshuffle=False)
        for step in self.rounds:
            drawn = elements | step.name >> RunRound(step, drawn, self.noise, self.reader, self.shards)
        return drawn | "Last" >> beam.Map(lambda last: last.state)


@dataclasses.dataclass
class RunRound(beam.PTransform):
    """Run one round.

    Noise is drawn in a step of its own, followed by a Reshuffle: a consumer that is retried reads
    the value that was drawn, it doesn't draw another.

    How many elements go from step to step depends on the number of descriptors alone, never on what
    their rows are: engines count elements where others than the private stage may see it.
    """

    step: Round
    drawn: beam.PCollection
    noise: Noise
    reader: Records
    shards: int

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take what `reader` knows, at least one; return one element, the `Drawn` state after this round."""
        drawn = beam.pvalue.AsSingleton(self.drawn)
        aggregates = elements | "Summarize" >> beam.Map(_summarize, self.reader, self.step, drawn)
        floor = self.step.floor
        merge = _MergeAll() if floor is None else _MergeShards(floor, self.shards)
        return (
            aggregates
            | "Merge" >> merge
            | "Release" >> beam.Map(_release, self.step, drawn, self.noise)
            | "Keep" >> beam.Reshuffle()
        )


@dataclasses.dataclass
class _MergeAll(beam.PTransform):
    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        return aggregates | beam.CombineGlobally(_Sum()).without_defaults()


@dataclasses.dataclass
class _MergeShards(beam.PTransform):
    """Merge sparse counts shard by shard, and bring together only what exceeds the floor."""

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


class _Sum(beam.CombineFn):
    """Add aggregates; there is always at least one.

    The accumulator is a list of (number of summands, sum), numbers descending. Like is added to like,
    so that n sparse aggregates are merged in n log n instead of n^2.
    """

    def create_accumulator(self) -> Sums:
        return []

    @no_annotations  # Beam would take protocols for types to check
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


@no_annotations
def _summarize(element: Any, reader: Records, step: Round, drawn: Drawn) -> Made:
    with plain_errors(f"Round {step.name}"):
        tree = _Sum()
        total = tree.create_accumulator()
        for block in reader.blocks(element):
            total = tree.add_input(total, step.summarize(block, drawn.state))
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
def _release(made: Made, step: Round, drawn: Drawn, noise: Noise) -> Drawn:
    with plain_errors(f"Round {step.name}"):
        _check_marks(made.mark, drawn.mark)
        return Drawn(step.release(made.aggregate, drawn.state, noise), uuid.uuid4().bytes)
