"""Run the rounds of one question or of several as one Beam pipeline.

A round is one or more passes over the data and one private release. The strands of several questions run side
by side through the same steps, so the number of steps does not grow with the number of questions.
"""

import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

import apache_beam as beam
from apache_beam.typehints.decorators import no_annotations

from core.noise import Noise
from core.rounds import (
    Round,
    RoundInParts,
    RoundInSections,
    State,
    Strand,
    examination_of,
    looks_of,
    parts_of,
    sections_of,
    sharing,
)
from core.sampling import renamed
from transforms.count_done import count_done
from transforms.draw_parts import DrawParts
from transforms.merge_aggregates import Made, Merge, MergeAndExamine, Sum
from transforms.merge_sections import MergeSections
from transforms.plain_errors import plain_errors
from transforms.records import (
    Drawn,
    Held,
    Kept,
    OneQuestion,
    Records,
    RecordsOfQuestions,
    by_strand,
    check_marks,
    dropped,
    held_by,
    turns_of,
)
from transforms.spill import Spill, Spilled, fetched
from transforms.spread import KEYED, Keyed, Piece, Spread

SHARDS = 16
"""Number of shards in which a large sparse aggregate is merged."""


def shards_of(groups: int) -> int:
    """Return in how many shards an aggregate is merged where each of some groups has one."""
    return max(1, SHARDS // max(1, groups))


@dataclass(frozen=True)
class Step:
    """What a strand does in one pass.

    Args:
        round_: the round.
        look: whether the pass is a look; see `core.rounds.Looking`. Otherwise it ends with the release.
        following: the round whose first pass comes after the release; None after the last round.
    """

    round_: Round
    look: bool = False
    following: Round | None = None


Ended = tuple[beam.PCollection, list[int]]
"""What strands have after a pass, and the numbers of those that end there."""


@dataclass(frozen=True)
class PassName:
    """The names of a pass.

    Args:
        label: of its steps.
        counted: what its work is counted as; see `transforms.count_done`.
        told: what it is called where it fails.
    """

    label: str
    counted: str
    told: str


def steps_of(strand: Strand) -> list[Step]:
    """Return what a strand does in each of its passes."""
    steps = []
    for round_, following in zip(strand.rounds, [*strand.rounds[1:], None], strict=False):
        steps += [Step(round_, look=True)] * looks_of(round_) + [Step(round_, following=following)]
    return steps


def passes_of(strands: Sequence[Strand]) -> list[str]:
    """Return the names by which `RunStrands` counts the work of its passes, in order."""
    groups = sharing(strands)
    return [name.counted for group in groups for name in _names_of_passes(strands, group)]


def _names_of_passes(strands: Sequence[Strand], group: Sequence[int]) -> list[PassName]:
    of = f" of {group[0]}" if any(examination_of(each) for each in strands[group[0]].rounds) else ""
    names = [f"pass {i + 1}{of}" for i in range(max(len(steps_of(strands[number])) for number in group))]
    return [PassName(name, name, name.capitalize()) for name in names]


def _names_of_rounds(strand: Strand) -> Iterator[PassName]:
    """Yield the names of the passes of one question: those of its rounds."""
    for round_ in strand.rounds:
        name, told = round_.name, f"Round {round_.name}"
        yield from (PassName(f"{name} look {look + 1}", name, told) for look in range(looks_of(round_)))
        yield PassName(name, name, told)


def _as_it_is(number: int, state: State) -> tuple[int, State]:
    return number, state


@dataclasses.dataclass
class RunRounds(beam.PTransform):
    """Run the rounds of one question: the Beam version of `core.rounds.run_in_memory`.

    Args:
        rounds: the rounds of a task, in order; their names label the steps.
        start: public state before the first round.
        noise: source of randomness; it is sent to the worker that releases.
        reader: how elements become records, such as `Reader` for descriptors and `AnswerReader` for answers.
        shards: number of shards in which a large sparse aggregate is merged.
        keep_part: makes of the number and the state of a part what is returned of it.
        names: see `RunPass`; not used of parts.
    """

    rounds: Sequence[Round]
    start: State
    noise: Noise
    reader: Records
    shards: int = SHARDS
    keep_part: Callable[[int, State], Any] = _as_it_is
    names: Any = b""

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element for `reader`; return one element, the state after the last round.

        Where the last round is made in parts, return what `keep_part` makes of each part.
        """
        *others, last = self.rounds
        in_parts = parts_of(last) > 1
        strand = Strand(tuple(others if in_parts else self.rounds), self.start)
        passes = _Passes({0: strand}, (0,), self.noise, OneQuestion(self.reader), self.shards, self.names)
        ended = [passed for passed, _ in passes.run(elements, list(_names_of_rounds(strand)))]
        if not in_parts:
            state = beam.Map(lambda pair: _drawn(pair).state)
            return ended[0] | "Last" >> state.with_output_types(Piece)
        drawn = ended[0] | "Drawn" >> beam.Map(_drawn) if others else Drawn(self.start)
        part = cast(RoundInParts, last)
        return elements | last.name >> DrawParts(part, drawn, self.noise, self.reader, self.keep_part)


@dataclasses.dataclass
class RunStrands(beam.PTransform):
    """Run several strands side by side: the Beam version of `core.rounds.run_strands_in_memory`.

    In each pass an element is read once for all strands that have a round due, or once for each turn of
    strands with large aggregates; see `transforms.records.turns_of`. A strand with an examination has steps
    of its own, because its aggregates stay with workers.

    Args:
        strands: the rounds of several questions, none of them in parts.
        noise: source of randomness; it is sent to the workers that release.
        records: how elements become records of the questions.
        shards: number of shards in which a large sparse aggregate is merged.
        names: see `RunPass`.
        questions: the number of the question of each strand; none where each is one of its own.
    """

    strands: Sequence[Strand]
    noise: Noise
    records: RecordsOfQuestions
    shards: int = SHARDS
    names: Any = b""
    questions: Sequence[int] = ()

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Take at least one element of each strand; return for each the pair of its number and last state."""
        last: list[Ended] = []
        questions = self.questions or range(len(self.strands))
        for group in sharing(self.strands):
            strands = {number: self.strands[number] for number in group}
            passes = _Passes(strands, questions, self.noise, self.records, self.shards, self.names)
            last += passes.run(elements, _names_of_passes(self.strands, group))
        if len(last) == 1:
            ((ended, _),) = last
            state = beam.Map(lambda pair: (pair[0], _drawn(pair).state))
            return ended | "Last" >> state.with_output_types(KEYED)
        # Flink refuses a Flatten of filtered collections that are also side inputs of the next pass.
        numbers = [numbers for _, numbers in last]
        kept = [beam.pvalue.AsList(ended) for ended, _ in last]
        one = elements.pipeline | "Together" >> beam.Create([numbers])
        return one | "Last" >> beam.FlatMap(_last, *kept).with_output_types(KEYED)


@dataclass(frozen=True)
class _Passes:
    """Strands that share the steps of every pass; see `RunStrands`."""

    strands: Mapping[int, Strand]
    questions: Sequence[int]
    noise: Noise
    records: RecordsOfQuestions
    shards: int
    names: Any

    def run(self, elements: beam.PCollection, names: Sequence[PassName]) -> list[Ended]:
        """Return the passes in which strands end."""
        kept: beam.PCollection | Kept = [
            (number, _begun(Drawn(strand.start), strand.rounds[0] if strand.rounds else None))
            for number, strand in self.strands.items()
        ]
        columns = zip_longest(*(steps_of(strand) for strand in self.strands.values()))
        last: list[Ended] = []
        for name, column in zip(names, columns, strict=True):
            steps = {number: step for number, step in zip(self.strands, column, strict=True) if step}
            turns = turns_of({number: step.round_ for number, step in steps.items()}, self.questions)
            run = RunPass(name, steps, turns, kept, self.noise, self.records, self.shards, self.names)
            kept = passed = elements | name.label >> run
            ended = [number for number, due in steps.items() if not due.look and due.following is None]
            if ended:
                last.append((passed, ended))
        return last


@no_annotations
def _drawn(pair: Keyed) -> Drawn:
    """Return what was drawn last for a strand, which may wait in a file."""
    with plain_errors("Keep"):
        return cast(Held, fetched(pair[1])).drawn


@no_annotations
def _last(numbers: Sequence[Sequence[int]], *kept: Kept) -> list[tuple[int, State]]:
    """Return of each strand the pair of its number and last state, given those that end in each pass."""
    found = []
    for ended, its in zip(numbers, kept, strict=True):
        pieces = by_strand(its)
        found += [(number, _drawn((number, pieces[number])).state) for number in ended]
    return found


@dataclasses.dataclass
class RunPass(beam.PTransform):
    """Run one pass: over the records of all strands that are due, with their looks and releases.

    Noise is drawn in a separate step, followed by a Reshuffle. A consumer that is retried then reads the same
    value and draws no other noise.

    The numbers of elements between steps depend on the number of descriptors, but not on their rows, because
    engines publish the numbers of elements.

    Args:
        name: of the pass.
        steps: what each strand does, by its number.
        turns: the numbers of the strands that share a turn; see `transforms.records.turns_of`.
        kept: what the strands have before the pass.
        noise: source of randomness.
        records: how elements become records.
        shards: number of shards in which a large sparse aggregate is merged.
        names: secret bytes that give records other identities (`core.sampling.renamed`), or a side input of
            them; none leave identities as they are.
    """

    name: PassName
    steps: Mapping[int, Step]
    turns: Sequence[Sequence[int]]
    kept: beam.PCollection | Kept
    noise: Noise
    records: RecordsOfQuestions
    shards: int
    names: Any = b""

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Return of each strand the pair of its number and what it has after the pass."""
        self.spill = Spill()  # the pipeline keeps its transforms, and so the file
        kept = self.kept if isinstance(self.kept, list) else beam.pvalue.AsList(self.kept)
        draws = not all(step.look for step in self.steps.values())
        how = (self.records, self.steps, self.turns)
        summarize = beam.FlatMap(_summarize, *how, kept, self.name, self.names)
        after = beam.Map(_after, self.steps, kept, self.noise, self.spill)
        passed = (
            elements
            | "Summarize" >> summarize.with_output_types(KEYED)
            | "Merge" >> self._merge(kept)
            | "Release" >> after.with_output_types(KEYED)
        )
        return passed | "Keep" >> Spread() if draws else passed

    def _merge(self, kept: Any) -> beam.PTransform:
        for number, step in self.steps.items():
            examination = None if step.look else examination_of(step.round_)
            if examination is not None:  # it is alone
                return MergeAndExamine(number, examination)
        floors = {number: step.round_.floor for number, step in self.steps.items()}
        in_sections = {
            number: cast(RoundInSections, step.round_)
            for number, step in self.steps.items()
            if sections_of(step.round_) and not step.look
        }
        if in_sections:
            return MergeSections(floors, self.shards, in_sections, kept, self.noise)
        return Merge(floors, self.shards)


def _begun(drawn: Drawn, round_: Round | None) -> Held:
    """Return what a strand has before the first pass of a round."""
    if round_ is None or not looks_of(round_):
        return Held(drawn)
    return Held(drawn, cast(Any, round_).coarse(drawn.state))


def _shards_of(step: Step) -> int:
    """Return in how many shards the aggregates of a pass are merged, where these are examined together."""
    examination = None if step.look else examination_of(step.round_)
    return 1 if examination is None else examination.shards


@no_annotations
def _summarize(
    element: Any,
    records: RecordsOfQuestions,
    steps: Mapping[int, Step],
    turns: Sequence[Sequence[int]],
    kept: Kept,
    name: PassName,
    names: bytes,
) -> Iterator[Keyed]:
    with plain_errors(name.told):
        held, add = held_by(kept, steps), Sum()
        for turn in turns:
            totals: dict[tuple[int, int], Any] = {}
            for number, block in records.blocks_of(element, turn):
                has, block = held[number], dataclasses.replace(block, ids=renamed(block.ids, names))
                aggregate = (has.closer or steps[number].round_).summarize(block, has.drawn.state)
                shards = _shards_of(steps[number])
                for shard, part in enumerate([aggregate] if shards == 1 else aggregate.split(shards)):
                    key = number, number * shards + shard
                    totals[key] = add.add_input(totals.pop(key, add.create_accumulator()), part)
            for number, shard in list(totals):
                mark = held[number].drawn.mark
                yield shard, Made(add.extract_output(totals.pop((number, shard))), mark)
        count_done(name.counted)


@no_annotations
def _after(merged: Keyed, steps: Mapping[int, Step], kept: Kept, noise: Noise, spill: Spill) -> Keyed:
    """Return the pair of a strand and what it has after a pass: what a look found, or what was drawn.

    What it has is spilled, and what it had is not needed any more.
    """
    number, made = merged
    step = steps[number]
    with plain_errors(f"Round {step.round_.name}"):
        has = held_by(kept, [number])[number]
        check_marks(made.mark, has.drawn.mark)
        if step.look:
            after = Held(has.drawn, cast(Any, has.closer).finer(made.aggregate, has.drawn.state))
        else:
            state = step.round_.release(made.aggregate, has.drawn.state, noise)
            after = _begun(Drawn(state, uuid.uuid4().bytes), step.following)
        dropped(kept, number)
        return number, Spilled(spill, spill.put(after))
