"""Run the rounds of a task as one Beam pipeline: each is one pass over the data and one private release."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.noise import Noise
from core.rounds import (
    Examination,
    Looking,
    Round,
    RoundInParts,
    State,
    examination_of,
    looks_of,
    parts_of,
)
from transforms.count_done import count_done
from transforms.draw_parts import DrawParts
from transforms.plain_errors import plain_errors
from transforms.records import Drawn, Records, check_marks
from transforms.spill import Spill

_MERGING = "Merging"
"""What the steps between workers and the private stage are called where they fail."""

_EXAMINING = "Examining"
"""What the steps that examine a merged aggregate are called where they fail."""

Sums = list[tuple[int, Any]]
"""Pairs of a number of aggregates and their sum, in descending order of the number."""

Keyed = tuple[int, Any]
"""A key and an element. Steps make and take keys themselves, because every step costs time in each round."""

_KEY = 0
"""The key of everything that is merged into one element."""


@dataclass(frozen=True)
class Made:
    """An aggregate with the mark of the state from which it was made.

    See `transforms.records.check_marks`.

    Args:
        aggregate: of the records of some workers.
        mark: see `Drawn`.
    """

    aggregate: Any
    mark: bytes

    def __add__(self, other: "Made") -> "Made":
        check_marks(self.mark, other.mark)
        return Made(self.aggregate + other.aggregate, self.mark)


def _as_it_is(number: int, state: State) -> tuple[int, State]:
    return number, state


@dataclasses.dataclass
class RunRounds(beam.PTransform):
    """Run `rounds` in order: the Beam version of `core.rounds.run_in_memory`.

    Args:
        rounds: the rounds of a task; their names label the steps.
        start: public state before the first round.
        noise: source of randomness; it is sent to the worker that releases.
        reader: how elements become records, such as `Reader` for descriptors and `AnswerReader` for answers.
        shards: number of shards in which a large sparse aggregate is merged.
        keep_part: makes of the number and the state of a part what is returned of it.
    """

    rounds: Sequence[Round]
    start: State
    noise: Noise
    reader: Records
    shards: int = 16
    keep_part: Callable[[int, State], Any] = _as_it_is

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return one element, the state after the last round.

        Where the last round is made in parts, return what `keep_part` makes of each part.
        """
        drawn: beam.PCollection | Drawn = Drawn(self.start)
        for round_ in self.rounds:
            if parts_of(round_) > 1:
                last = cast(RoundInParts, round_)
                return elements | last.name >> DrawParts(last, drawn, self.noise, self.reader, self.keep_part)
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
    drawn: beam.PCollection | Drawn
    noise: Noise
    reader: Records
    shards: int

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return one element, the `Drawn` state after this round."""
        drawn = _side_input(self.drawn)
        examination = examination_of(self.round_)
        merge = self._merge() if examination is None else _MergeAndExamine(examination)
        return (
            self._counted(elements, drawn)
            | "Merge" >> merge
            | "Release" >> beam.Map(_release, self.round_, drawn, self.noise)
            | "Keep" >> _Keep()
        )

    def _counted(self, elements: beam.PCollection, drawn: Any) -> beam.PCollection:
        """Return the aggregates of the workers, after the looks of the round; see `core.rounds.Looking`."""
        looks = looks_of(self.round_)
        if not looks:
            summarize = beam.Map(_summarize, self.reader, self.round_, drawn)
            return elements | "Summarize" >> summarize.with_output_types(Keyed)
        closer: beam.PCollection | Drawn
        if isinstance(self.drawn, Drawn):
            closer = _coarse(self.drawn, self.round_)
        else:
            closer = self.drawn | "Coarse" >> beam.Map(_coarse, self.round_)
        for number in range(looks):
            look = beam.Map(_look, self.reader, _side_input(closer), drawn).with_output_types(Keyed)
            closer = (
                elements
                | f"Look{number}" >> look
                | f"MergeLook{number}" >> self._merge()
                | f"Finer{number}" >> beam.Map(_finer, _side_input(closer), drawn)
            )
        look = beam.Map(_look, self.reader, _side_input(closer), drawn).with_output_types(Keyed)
        return elements | "Summarize" >> look

    def _merge(self) -> "_Merge":
        return _Merge(self.round_.floor, self.shards)


def _side_input(drawn: beam.PCollection | Drawn) -> Any:
    return drawn if isinstance(drawn, Drawn) else beam.pvalue.AsSingleton(drawn)


@dataclasses.dataclass
class _Merge(beam.PTransform):
    """Merge all aggregates into one; sparse counts with a floor by shard first."""

    floor: int | None
    shards: int

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        if self.floor is not None:
            aggregates |= "Shards" >> _MergeShards(self.floor, self.shards)
        return aggregates | "Together" >> beam.CombinePerKey(_Sum())


@dataclasses.dataclass
class _MergeShards(beam.PTransform):
    """Merge sparse counts by shard, and concatenate the counts that exceed the floor."""

    floor: int
    shards: int

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        return (
            aggregates
            | "Split" >> beam.FlatMap(_split, self.shards).with_output_types(Keyed)
            | "MergeShard" >> beam.CombinePerKey(_Sum())
            | "Clip" >> beam.Map(_clip, self.floor).with_output_types(Keyed)
        )


class _Keep(beam.Reshuffle):
    """A Reshuffle of one element, in few steps. Runners that have a Reshuffle of their own use that."""

    def expand(self, pcoll: beam.pvalue.PValue) -> beam.PCollection:
        return (
            pcoll
            | "Key" >> beam.Map(lambda value: (_KEY, value)).with_output_types(Keyed)
            | "Group" >> beam.GroupByKey()
            | "Value" >> beam.FlatMap(lambda grouped: grouped[1])
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
            | "MergeLarge" >> beam.CombinePerKey(_SpilledSum(self.spill))
            | "Arrange" >> beam.Map(_arrange, self.examination, self.spill)
        )
        examine = beam.Map(_examine, self.examination, self.spill, beam.pvalue.AsSingleton(arranged))
        return (
            aggregates.pipeline
            | "Parts" >> beam.Create(range(self.examination.examiners))
            | "Examine" >> examine.with_output_types(Keyed)
            | "Gather" >> beam.CombinePerKey(_Sum())
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
def _summarize(element: Any, reader: Records, round_: Round, drawn: Drawn) -> Keyed:
    with plain_errors(f"Round {round_.name}"):
        tree = _Sum()
        total = tree.create_accumulator()
        for block in reader.blocks(element):
            total = tree.add_input(total, round_.summarize(block, drawn.state))
        count_done(round_.name)
        return _KEY, Made(tree.extract_output(total), drawn.mark)


@no_annotations
def _coarse(drawn: Drawn, round_: Looking) -> Drawn:
    with plain_errors(f"Round {round_.name}"):
        return Drawn(round_.coarse(drawn.state), drawn.mark)


@no_annotations
def _look(element: Any, reader: Records, closer: Drawn, drawn: Drawn) -> Keyed:
    check_marks(closer.mark, drawn.mark)
    return _summarize(element, reader, closer.state, drawn)


@no_annotations
def _finer(merged: Keyed, closer: Drawn, drawn: Drawn) -> Drawn:
    _, made = merged
    with plain_errors(f"Round {closer.state.name}"):
        check_marks(made.mark, drawn.mark)
        return Drawn(closer.state.finer(made.aggregate, drawn.state), drawn.mark)


@no_annotations
def _split(summary: Keyed, shards: int) -> list[Keyed]:
    _, made = summary
    with plain_errors(_MERGING):
        return [(shard, Made(counts, made.mark)) for shard, counts in enumerate(made.aggregate.split(shards))]


@no_annotations
def _clip(shard: Keyed, floor: int) -> Keyed:
    _, made = shard
    with plain_errors(_MERGING):
        return _KEY, Made(made.aggregate.above(floor), made.mark)


@no_annotations
def _arrange(merged: Keyed, examination: Examination, spill: Spill) -> Any:
    _, made = merged
    with plain_errors(_EXAMINING):
        return spill.put(Made(examination.arrange(made.aggregate), made.mark))


@no_annotations
def _examine(part: int, examination: Examination, spill: Spill, kept: Any) -> Keyed:
    with plain_errors(_EXAMINING):
        arranged = spill.share(kept)
        return _KEY, Made(examination.examine(arranged.aggregate, part), arranged.mark)


@no_annotations
def _release(merged: Keyed, round_: Round, drawn: Drawn, noise: Noise) -> Drawn:
    _, made = merged
    with plain_errors(f"Round {round_.name}"):
        check_marks(made.mark, drawn.mark)
        return Drawn(round_.release(made.aggregate, drawn.state, noise), uuid.uuid4().bytes)
