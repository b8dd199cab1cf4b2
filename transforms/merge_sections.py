"""Merge aggregates that no process can hold as a whole: in sections, which workers examine one by one."""

import dataclasses
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.noise import Noise
from core.rounds import RoundInSections
from transforms.merge_aggregates import EXAMINING, MERGING, Made, Sum
from transforms.plain_errors import plain_errors
from transforms.records import Kept, check_marks, held_by
from transforms.spill import Spill
from transforms.spread import KEYED, Keyed

_GROUPS = 64
"""Most elements that are made of an aggregate. Each holds pieces of several sections, if there are more."""


@dataclasses.dataclass
class MergeSections(beam.PTransform):
    """Merge the aggregates of strands, some of which are examined in sections; see `RoundInSections`.

    Pieces of sections are gathered and not combined on their way, so a worker holds one section at a time.
    They wait in a file where the whole pipeline runs in this process, and in the runner's shuffle elsewhere.
    Nothing else may read the aggregates: they are dropped once they are split.

    Every section is there, also without records, and so is every shard of the other strands.

    Args:
        floors: see `Merge`.
        shards: see `Merge`.
        rounds: the rounds of those strands that are examined in sections.
        kept: what the strands have before the pass, as a side input.
        noise: source of randomness of the examinations.
    """

    floors: Mapping[int, int | None]
    shards: int
    rounds: Mapping[int, RoundInSections]
    kept: Any
    noise: Noise

    def expand(self, aggregates: beam.PCollection) -> beam.PCollection:
        """Take and return pairs of a strand and a `Made`."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        sections = {
            strand: max(1, round_.sections // len(self.rounds)) for strand, round_ in self.rounds.items()
        }
        deal = beam.FlatMap(_deal, self.floors, self.shards, sections, self.spill)
        examine = beam.Map(_examine_sections, self.kept, self.floors, self.rounds, self.noise, self.spill)
        return (
            aggregates
            | "Deal" >> deal.with_output_types(KEYED)
            | "Gather" >> beam.GroupByKey()
            | "Examine" >> examine.with_output_types(KEYED)
            | "Together" >> beam.CombinePerKey(Sum())
        )


@no_annotations
def _deal(
    summary: Keyed,
    floors: Mapping[int, int | None],
    shards: int,
    sections: Mapping[int, int],
    spill: Spill,
) -> list[Keyed]:
    """Split an aggregate into sections or shards, and make groups of the pieces."""
    strand, made = summary
    with plain_errors(MERGING):
        most = sections.get(strand) or (1 if floors[strand] is None else shards)
        split = made.aggregate.split(most) if most > 1 else [made.aggregate]
        pieces = [spill.put(piece) for piece in split]
        made.drop()
        groups = min(most, _GROUPS)
        return [(strand * _GROUPS + group, Made(pieces[group::groups], made.mark)) for group in range(groups)]


@no_annotations
def _examine_sections(
    gathered: tuple[int, Iterable[Made]],
    kept: Kept,
    floors: Mapping[int, int | None],
    rounds: Mapping[int, RoundInSections],
    noise: Noise,
    spill: Spill,
) -> Keyed:
    """Return what a group of sections has to say, or the merged shards of another strand."""
    strand, sent = gathered[0] // _GROUPS, list(gathered[1])
    with plain_errors(MERGING):
        drawn = held_by(kept, [strand])[strand].drawn
    for made in sent:
        check_marks(made.mark, drawn.mark)
    found = []
    for pieces in zip(*(made.aggregate for made in sent), strict=True):
        with plain_errors(MERGING):
            if strand in rounds:
                each = [spill.get(piece) for piece in pieces]
                total = type(each[0]).merged(each)
            else:
                total = _added(map(spill.get, pieces))
        with plain_errors(EXAMINING):
            if strand in rounds:
                total = rounds[strand].examine(total, drawn.state, noise, spill)
            elif floors[strand] is not None:
                total = total.above(floors[strand])
        found.append(total)
    return strand, Made(_added(found), drawn.mark)


def _added(aggregates: Iterable[Any]) -> Any:
    add = Sum()
    return add.extract_output(reduce(add.add_input, aggregates, add.create_accumulator()))
