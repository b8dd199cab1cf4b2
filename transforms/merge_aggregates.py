"""Merge the aggregates that workers made: by key, in shards where they are large, or examined on workers.

The key of what is merged and released is the number of a strand; see `core.rounds.Strand`. Steps make and
take keys themselves, because every step costs time in each round.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations, with_output_types

from core.rounds import Examination, total_of
from core.stored import Stored
from transforms.plain_errors import plain_errors
from transforms.records import check_marks
from transforms.spill import Place, Spill
from transforms.spread import KEYED, Keyed, Piece, PieceCoder

MERGING = "Merging"
"""What the steps between workers and the private stage are called where they fail."""

EXAMINING = "Examining"
"""What the steps that examine a merged aggregate are called where they fail."""

_MOST_HELD = 1 << 22
"""Keys of sparse sums that a worker holds for other accumulators than the one to which it adds."""

_FEWER_HELD = 1 << 17
"""The same, of what is merged to be examined."""

Sums = list[tuple[int, Any]]
"""Pairs of a number of aggregates and their sum, in descending order of the number."""


@dataclass
class Made:
    """An aggregate with the mark of the state from which it was made; see `transforms.records.check_marks`.

    Args:
        aggregate: of the records of some workers.
        mark: see `Drawn`.
    """

    aggregate: Any
    mark: bytes

    def __len__(self) -> int:
        return len(self.aggregate)

    def drop(self) -> None:
        """Hold the aggregate no longer: runners hold an element until they have the next one."""
        self.aggregate = None

    def __add__(self, other: "Made") -> "Made":
        check_marks(self.mark, other.mark)
        return Made(self.aggregate + other.aggregate, self.mark)


@dataclasses.dataclass
class Merge(beam.PTransform):
    """Merge all aggregates of each strand into one; sparse counts with a floor by shard first.

    Nothing else may read the aggregates: they are dropped once they are split.

    Where some strands have a floor, an aggregate of the others passes through one shard.

    Args:
        floors: the clipping floor of each strand, or None; see `core.rounds.Round`.
        shards: number of shards in which a large sparse aggregate is merged.
    """

    floors: Mapping[int, int | None]
    shards: int

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        """Take and return pairs of a strand and a `Made`."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        if all(floor is None for floor in self.floors.values()):
            shards = aggregates
        else:
            shards = aggregates | "Shards" >> _MergeShards(self.floors, self.shards, self.spill)
        return shards | "Together" >> beam.CombinePerKey(SpilledSum(self.spill))


@dataclasses.dataclass
class _MergeShards(beam.PTransform):
    """Merge sparse counts by shard, and keep the counts that exceed the floor.

    Sums wait in a file where the whole pipeline runs in this process, because its runner would hold several
    copies of them until it ends.
    """

    floors: Mapping[int, int | None]
    shards: int
    spill: Spill

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        return (
            aggregates
            | "Split" >> beam.FlatMap(_split, self.floors, self.shards).with_output_types(KEYED)
            | "MergeShard" >> beam.CombinePerKey(SpilledSum(self.spill))
            | "Clip" >> beam.Map(_clip, self.floors, self.shards).with_output_types(KEYED)
        )


@dataclasses.dataclass
class MergeAndExamine(beam.PTransform):
    """Merge shards of large aggregates, and examine them together in parts, which are always there.

    See `core.rounds.Examination`. Between the steps, aggregates wait in a file where the whole pipeline runs
    in this process, because its runner would hold several copies of them.

    Args:
        strand: whose aggregates they are.
        examination: of its round.
    """

    strand: int
    examination: Examination

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        """Take pairs of a shard and a `Made`; return one pair of the strand and what was found."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        arrange = beam.Map(_arrange, self.examination, self.spill)
        store = beam.Map(_store, self.strand, self.spill)
        arranged = (
            aggregates
            | "MergeLarge" >> beam.CombinePerKey(SpilledSum(self.spill, _FEWER_HELD))
            | "Store" >> store.with_output_types(KEYED)
            | "All" >> beam.CombinePerKey(Sum())
            | "Arrange" >> arrange.with_output_types(Piece)
        )
        kept = beam.pvalue.AsSingleton(arranged)
        examine = beam.Map(_examine, self.strand, self.examination, self.spill, kept)
        return (
            aggregates.pipeline
            | "Parts" >> beam.Create(range(self.examination.examiners))
            | "Examine" >> examine.with_output_types(KEYED)
            | "Gather" >> beam.CombinePerKey(Sum())
        )


@with_output_types(Piece)
class Sum(beam.CombineFn):
    """Add at least one aggregate.

    The accumulator is a list of (number of summands, sum) in descending order of the numbers. Sums of similar
    numbers are added, so that merging n sparse aggregates takes n log n time instead of n^2. So are sums of
    similar size: where most keys of a summand are known, the sum of many is hardly larger than that of few,
    and few of them should be held.
    """

    def get_accumulator_coder(self) -> PieceCoder:
        """Return the coder of accumulators, which are not measured either."""
        return PieceCoder()

    def create_accumulator(self) -> Sums:
        """Return the accumulator of no aggregate."""
        return []

    @no_annotations  # Beam would use protocols as type hints
    def add_input(self, accumulator: Sums, aggregate: Any, summands: int = 1) -> Sums:
        """Add an aggregate, which may be the sum of several."""
        with plain_errors(MERGING):
            while accumulator and (
                accumulator[-1][0] <= summands or _are_alike(accumulator[-1][1], aggregate)
            ):
                more, total = accumulator.pop()
                summands, aggregate = summands + more, total + aggregate
        accumulator.append((summands, aggregate))
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        """Return one accumulator of all that the others have added."""
        merged = self.create_accumulator()
        for accumulator in accumulators:
            for summands, total in accumulator:
                self.add_input(merged, total, summands)
        return merged

    def compact(self, accumulator: Sums) -> Sums:
        """Return the accumulator with one sum."""
        return [(sum(n for n, _ in accumulator), self.extract_output(accumulator))]

    @no_annotations
    def extract_output(self, accumulator: Sums) -> Any:
        """Return the sum."""
        with plain_errors(MERGING):
            return total_of(total for _, total in reversed(accumulator))


def _keys_of(accumulator: Sums) -> int:
    """Return how many keys the sparse sums have that do not wait in a file."""
    return sum(_keys_in(total) for _, total in accumulator if not isinstance(total, Place))


def _keys_in(total: Any) -> int:
    """Return how many keys a sparse sum has; 0 where it is another one."""
    try:
        return len(total)
    except TypeError:
        return 0


def _are_alike(total: Any, aggregate: Any) -> bool:
    """Return whether a sum has at most half as many keys again as an aggregate; no, where they have none."""
    keys = _keys_in(aggregate)
    return keys > 0 and 2 * _keys_in(total) <= 3 * keys


class SpilledSum(Sum):
    """Add aggregates as `Sum` does. Its accumulators wait in a file before they are merged.

    Of many keys, such as groups, all accumulators of a worker together hold some `most` keys of sparse
    aggregates. Beyond that, what is added waits in the file at once, as the first sums of its accumulator.
    """

    def __init__(self, spill: Spill, most: int | None = None) -> None:
        self.spill, self.held = spill, 0
        self.most = _MOST_HELD if most is None else most

    @no_annotations
    def add_input(self, accumulator: Sums, aggregate: Any, summands: int = 1) -> Sums:
        """Add an aggregate, which may be the sum of several."""
        first = len(accumulator)  # of the sums to which is added: those behind all that waits
        while first and not isinstance(accumulator[first - 1][1], Place):
            first -= 1
        own = accumulator[first:]
        del accumulator[first:]
        self.held -= _keys_of(own)
        own = super().add_input(own, aggregate, summands)
        if self.held > self.most:  # by others
            with plain_errors(MERGING):
                own = [(n, self.spill.put(total)) for n, total in own]
        self.held += _keys_of(own)
        accumulator += own
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Sums]) -> Sums:
        """Return one accumulator of all that the others have added."""
        merged = self.create_accumulator()
        for accumulator in accumulators:
            for summands, total in accumulator:
                with plain_errors(MERGING):
                    total = self.spill.get(total)
                super().add_input(merged, total, summands)
        return merged

    def compact(self, accumulator: Sums) -> Sums:
        """Return the accumulator with one sum."""
        self.held -= _keys_of(accumulator)
        ((summands, total),) = super().compact(self.merge_accumulators([accumulator]))
        with plain_errors(MERGING):
            return [(summands, self.spill.put(total))]

    @no_annotations
    def extract_output(self, accumulator: Sums) -> Any:
        """Return the sum."""
        return super().extract_output([(n, self.spill.get(total)) for n, total in accumulator])


@no_annotations
def _split(summary: Keyed, floors: Mapping[int, int | None], shards: int) -> list[Keyed]:
    strand, made = summary
    with plain_errors(MERGING):
        if floors[strand] is None:
            return [(strand * shards, made)]
        parts = enumerate(made.aggregate.split(shards), start=strand * shards)
        made.drop()
        return [(shard, Made(counts, made.mark)) for shard, counts in parts]


@no_annotations
def _clip(merged: Keyed, floors: Mapping[int, int | None], shards: int) -> Keyed:
    shard, made = merged
    strand = shard // shards
    with plain_errors(MERGING):
        floor = floors[strand]
        return strand, made if floor is None else Made(made.aggregate.above(floor), made.mark)


@no_annotations
def _store(merged: Keyed, strand: int, spill: Spill) -> Keyed:
    _, made = merged
    with plain_errors(MERGING):
        return strand, Made(Stored.of(made.aggregate, spill), made.mark)


@no_annotations
def _arrange(merged: Keyed, examination: Examination, spill: Spill) -> Any:
    _, made = merged
    with plain_errors(EXAMINING):
        return spill.put(Made(examination.arrange(made.aggregate, spill), made.mark))


@no_annotations
def _examine(part: int, strand: int, examination: Examination, spill: Spill, kept: Any) -> Keyed:
    with plain_errors(EXAMINING):
        arranged = spill.share(kept)
        return strand, Made(examination.examine(arranged.aggregate, part), arranged.mark)
