"""Run the rounds of a task as one Beam pipeline: each a pass over the data and one private release."""

import dataclasses
import errno
import os
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
from apache_beam.typehints.decorators import no_annotations

from core.aggregate import Aggregate, Counts
from core.noise import Noise
from core.rounds import Block, Round, State
from transforms.open_source import InputError

Sums = list[tuple[int, Any]]
"""How many aggregates were added, and their sum; several where few were added to many."""


class RoundError(RuntimeError):
    """A step failed; the text holds nothing that depends on rows."""


class Records(Protocol):
    """How the elements that every round goes through become records."""

    def blocks(self, element: Any) -> Iterator[Block]:
        """Return the element's records in blocks, the same ones whenever it is asked."""


_NO_COUNTS = Counts(np.empty(0, np.int64), np.empty(0, np.int64))


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
        state = elements.pipeline | "Start" >> beam.Create([self.start], reshuffle=False)
        for step in self.rounds:
            state = elements | step.name >> RunRound(step, state, self.noise, self.reader, self.shards)
        return state


@dataclasses.dataclass
class RunRound(beam.PTransform):
    """Run one round.

    Noise is drawn in a step of its own, followed by a Reshuffle: a consumer that is retried reads
    the value that was drawn, it doesn't draw another.
    """

    step: Round
    state: beam.PCollection
    noise: Noise
    reader: Records
    shards: int

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take what `reader` knows, at least one; return one element, the state after this round."""
        state = beam.pvalue.AsSingleton(self.state)
        aggregates = elements | "Summarize" >> beam.FlatMap(_summarize, self.reader, self.step, state)
        floor = self.step.floor
        merge = _MergeAll() if floor is None else _MergeShards(floor, self.shards)
        return (
            aggregates
            | "Merge" >> merge
            | "Release" >> beam.Map(_release, self.step, state, self.noise)
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
        return reduce(lambda a, b: a + b, (total for _, total in reversed(accumulator)))


@no_annotations
def _summarize(element: Any, reader: Records, step: Round, state: State) -> Iterator[Aggregate]:
    with untold(f"Round {step.name}"):
        for block in reader.blocks(element):
            yield step.summarize(block, state)


@no_annotations
def _split(counts: Counts, shards: int) -> list[tuple[int, Counts]]:
    return [(0, _NO_COUNTS), *counts.split(shards)]  # a key stays even where nothing was counted


@no_annotations
def _clip(shard: tuple[int, Counts], floor: int) -> Counts:
    return shard[1].above(floor)


@no_annotations
def _release(aggregate: Aggregate, step: Round, state: State, noise: Noise) -> State:
    with untold(f"Round {step.name}"):
        return step.release(aggregate, state, noise)


@contextmanager
def untold(what: str) -> Iterator[None]:
    """Tell of an error its kind and place alone: runners log what it says, and it may quote rows.

    Of the system's own errors, the system's word for their number is told, and no path: it knows no rows.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise RoundError(f"{what} failed: the worker ran out of memory.") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
            raise RoundError(f"{what} failed: {os.strerror(error.errno)}.") from None
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(last.filename)}:{last.lineno}"
        raise RoundError(f"{what} failed with {type(error).__name__} at {place}.") from None
