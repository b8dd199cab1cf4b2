import errno
import os
import pickle
import random
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.aggregate import Counts, Tally
from core.noise import Noise
from core.rounds import Block, Strand, run_in_memory
from core.secure_noise import SecureNoise
from core.stored import Store, Stored
from tests.transforms.tables import UNIT_SQUARE, write_points
from transforms import merge_aggregates as module
from transforms.embedded_runner import EmbeddedRunner
from transforms.merge_aggregates import Made, Merge, SpilledSum, Sum, _examine, _split
from transforms.merge_sections import _deal, _examine_sections
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader
from transforms.records import Drawn, OneQuestion, RoundError, held_by, turns_of
from transforms.run_rounds import Held, PassName, RunRounds, RunStrands, Step, _after, _summarize
from transforms.spill import Place, Spill, fetched
from transforms.spread import KEYED, PieceCoder


@dataclass(frozen=True)
class Echo:
    """Workers send back the state they saw; the release keeps it, and draws the next."""

    name: str
    floor: None = None

    def summarize(self, block: Block, state: tuple[int, ...]) -> Tally:
        return Tally(np.array([1, *state]))

    def release(self, aggregate: Tally, state: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        blocks, *seen = aggregate.totals.tolist()
        assert seen == [blocks * value for value in state]
        return (*state, int(noise.laplace(np.zeros(1, np.int64), 1e9)[0]))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return open_source(str(write_points(tmp_path / "data", [600], 4)), ["x", "y"])


REPEATED = {
    "one_thread": {},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
}


def append_to(path: Path) -> beam.PTransform:
    """Note what a consumer saw, once per time that it ran."""

    def append(state: object) -> None:
        with path.open("a") as file:
            file.write(f"{state}\n")

    return path.name >> beam.Map(append)


@pytest.mark.parametrize("options", REPEATED.values(), ids=REPEATED)
def test_repeated_bundles_leave_one_value_visible(source: Source, tmp_path: Path, options: dict) -> None:
    """The noise is secure and wide: two draws are equal with probability below 1e-9."""
    options = PipelineOptions([], direct_runner_bundle_repeat=3, **options)
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        rounds = [Echo("first"), Echo("second"), Echo("third")]
        reader = Reader.of(source, UNIT_SQUARE)
        last = pipeline | ReadBlocks(source) | RunRounds(rounds, (), SecureNoise(), reader)
        last | append_to(tmp_path / "one")
        last | "Again" >> beam.Reshuffle() | append_to(tmp_path / "two")
    one, two = ((tmp_path / name).read_text().splitlines() for name in ("one", "two"))
    assert len(one) >= 4 and len(two) >= 4
    assert len({*one, *two}) == 1


def test_without_a_reshuffle_repeated_bundles_would_show_many_values(tmp_path: Path) -> None:
    """The power of the test above: this is what it would see."""
    options = PipelineOptions([], direct_runner_bundle_repeat=3)
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        start = pipeline | beam.Create([()], reshuffle=False)
        last = start | "Draw" >> beam.Map(lambda _: int(SecureNoise().laplace(np.zeros(1, np.int64), 1e9)[0]))
        last | append_to(tmp_path / "one")
    assert len(set((tmp_path / "one").read_text().splitlines())) == 4


def test_two_draws_of_one_state_release_nothing(source: Source, tmp_path: Path) -> None:
    """An engine that recovers a part could hand the workers another draw than the private stage."""
    reader, seen = OneQuestion(Reader.of(source, UNIT_SQUARE)), tmp_path / "seen"
    steps, name, spill = {0: Step(Echo("first"))}, PassName("first", "first", "first"), Spill()

    def run(workers: list[Drawn], private: Drawn) -> None:
        with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
            elements = pipeline | ReadBlocks(source)
            how = (reader, steps, [[0]])
            counted = [
                elements | f"Summarize{i}" >> beam.FlatMap(_summarize, *how, [(0, Held(state))], name, b"")
                for i, state in enumerate(workers)
            ]
            made = counted | beam.Flatten() | beam.CombinePerKey(Sum())
            made | beam.Map(_after, steps, [(0, Held(private))], SecureNoise(), spill) | append_to(seen)

    one, other = Drawn((5,), b"one"), Drawn((5,), b"other")
    for workers, private in (([one], other), ([one, other], one), ([Drawn(())], one)):
        with pytest.raises(Exception, match=r"^The engine gave two different draws"):
            run(workers, private)
        assert not seen.exists()
    run([one, one], one)
    assert len(seen.read_text().splitlines()) == 1


SECRET = 'row 4711; shoal-error: [2, "row 4711"]'


@dataclass(frozen=True)
class Quoting:
    """An aggregate that fails where engines hold it, by a text that quotes it and forges a worker's mark."""

    where: str

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ValueError(SECRET)

    def __add__(self, other: "Quoting") -> "Quoting":
        self._fail("add")
        return self

    def split(self, shards: int) -> list["Quoting"]:
        self._fail("split")
        return [self] * shards

    def above(self, floor: int) -> "Quoting":
        self._fail("above")
        return self


@dataclass(frozen=True)
class Quoted:
    """A round of `Quoting`."""

    where: str
    floor: int | None
    name: str = "quoted"

    def summarize(self, block: Block, state: None) -> Quoting:
        return Quoting(self.where)

    def release(self, aggregate: Quoting, state: None, noise: Noise) -> int:
        return 0


@dataclass(frozen=True)
class OneRecord:
    """Every element is one record."""

    def blocks(self, element: int) -> Iterator[Block]:
        yield Block(np.zeros((1, 1), np.int64), np.array([element], np.uint64))


@pytest.mark.parametrize(("where", "floor"), [("add", None), ("add", 0), ("split", 1), ("above", 1)])
def test_a_merge_that_fails_quotes_nothing(where: str, floor: int | None) -> None:
    """What engines log and hand to the submitter has kind and place of the error, and none of its text."""

    def run() -> None:
        with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
            rounds = [Quoted(where, floor)]
            _ = pipeline | beam.Create([1, 2, 3]) | RunRounds(rounds, None, SecureNoise(), OneRecord())

    with pytest.raises(Exception, match=r"^Merging failed with ValueError at test_run_rounds.py:") as caught:
        run()
    assert "4711" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("most", [1, 4])
def test_an_aggregate_is_held_no_longer_once_it_is_split(most: int) -> None:
    """The runner holds the element until it has the next one, in every pass. Pieces are all of it."""
    spill = Spill()

    def split(made: Made) -> list[Counts]:
        return [piece.aggregate for _, piece in _split((0, made), {0: 1}, most)]

    def dealt(made: Made) -> list[Counts]:
        groups = _deal((0, made), {0: 1}, most, {}, spill)
        return [spill.get(place) for _, group in groups for place in group.aggregate]

    for cut in (split, dealt):
        made = Made(Counts.of(np.arange(1000)), b"")
        pieces = cut(made)
        assert made.aggregate is None
        assert len(pieces) == most
        assert Counts.merged(pieces) == Counts.of(np.arange(1000))


def test_every_draw_has_a_mark_of_its_own() -> None:
    made = (0, Made(Tally(np.array([1])), b""))
    steps, kept = {0: Step(Echo("r"))}, [(0, Held(Drawn(())))]
    spill = Spill()
    drawn = [fetched(_after(made, steps, kept, SecureNoise(), spill)[1]).drawn for _ in range(100)]
    assert len({draw.mark for draw in drawn}) == 100


def test_a_state_is_one_object_for_all_threads_until_its_pass_is_over() -> None:
    """And passes through the runner as a place in a file, of which it may hold as many copies as it likes."""
    one, other = Spill(), Spill()
    steps = {number: Step(Echo("r"), following=Echo("s")) for number in (0, 1)}
    large = tuple(range(2000))
    kept = [(number, Held(Drawn(large))) for number in steps]
    first = Made(Tally(np.array([1, *large])), b"")
    after = [_after((number, first), steps, kept, SecureNoise(), one) for number in steps]
    assert all(len(pickle.dumps(each)) < 1000 for each in after)
    with ThreadPoolExecutor(4) as threads:
        held = list(threads.map(partial(held_by, after), [(0, 1)] * 20))
    assert all(each[0] is held[0][0] and each[1] is held[0][1] for each in held)
    for number, its in held[0].items():
        made = Made(Tally(np.array([1, *its.drawn.state])), its.drawn.mark)
        _, last = _after((number, made), steps, after, SecureNoise(), other)
        assert fetched(last).drawn.state[:-1] == its.drawn.state
        assert set(one._held) == {its.kept for another, its in after if another > number}
    assert not other._held


def parts(n: int, seed: int) -> list[Counts]:
    rng = np.random.default_rng(seed)
    return [Counts.of(rng.integers(0, 50, rng.integers(0, 30))) for _ in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100])
def test_sums_do_not_depend_on_how_they_are_bracketed(n: int) -> None:
    """Any tree of accumulators, compacted or not, gives the plain sum."""
    aggregates, expected = parts(n, seed=n), parts(n, seed=n)
    total = expected[0]
    for part in expected[1:]:
        total += part
    tree, shuffle = Sum(), random.Random(n)
    accumulators = []
    while aggregates:
        accumulator = tree.create_accumulator()
        for _ in range(shuffle.randint(0, 9)):
            if aggregates:
                accumulator = tree.add_input(accumulator, aggregates.pop(shuffle.randrange(len(aggregates))))
        if accumulator:
            accumulators.append(tree.compact(accumulator) if shuffle.random() < 0.5 else accumulator)
    merged = tree.merge_accumulators([tree.create_accumulator(), *accumulators])
    assert tree.extract_output(merged) == total
    assert tree.extract_output(tree.compact(merged)) == total


def test_few_sums_are_open_at_a_time() -> None:
    tree, accumulator = Sum(), Sum().create_accumulator()
    for _ in range(1000):
        accumulator = tree.add_input(accumulator, Tally(np.ones(1, np.int64)))
        assert len(accumulator) <= 10
    assert tree.extract_output(accumulator) == Tally(np.array([1000]))


@pytest.mark.parametrize(("keys", "most"), [(100, 3), (10**9, 8)])
def test_sums_that_hardly_grow_are_not_held_side_by_side(keys: int, most: int) -> None:
    """Of 200 aggregates that have most of a hundred keys, and of 200 whose keys differ."""
    rng, tree, held = np.random.default_rng(0), Sum(), 0
    accumulator, expected = tree.create_accumulator(), Counts.of(np.empty(0, np.int64))
    for _ in range(200):
        part = Counts.of(rng.integers(0, keys, 150))
        expected += part
        accumulator = tree.add_input(accumulator, Made(part, b""))
        held = max(held, len(accumulator))
    assert held <= most and tree.extract_output(accumulator).aggregate == expected


@dataclass(frozen=True)
class Shares:
    """Count the records, and let three parts examine the number: each finds a third of it."""

    where: str = ""
    name: str = "shares"
    floor: None = None
    examiners: int = 3
    shards: int = 2

    @property
    def examination(self) -> "Shares":
        return self

    def summarize(self, block: Block, state: None) -> Counts:
        return Counts.of(np.arange(len(block.ids)))

    def arrange(self, aggregate: Stored, store: Store) -> int:
        if self.where == "arrange":
            raise ValueError(SECRET)
        return sum(int(part.counts.sum()) for part in aggregate)

    def examine(self, arranged: int, part: int) -> Tally:
        if self.where == "examine":
            raise ValueError(SECRET)
        return Tally(np.array([arranged // 3 + (part < arranged % 3), 1]))

    def release(self, aggregate: Tally, state: None, noise: Noise) -> list[int]:
        return aggregate.totals.tolist()


@pytest.mark.parametrize("options", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("elements", [1, 100])
def test_a_merged_aggregate_is_examined_in_all_parts(tmp_path: Path, options: dict, elements: int) -> None:
    options = PipelineOptions([], **options)
    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        rounds = [Shares()]
        last = pipeline | beam.Create(range(elements)) | RunRounds(rounds, None, SecureNoise(), OneRecord())
        last | append_to(tmp_path / "last")
    blocks = [block for element in range(elements) for block in OneRecord().blocks(element)]
    twin = run_in_memory([Shares()], blocks, None, SecureNoise())
    assert twin == [elements, 3]
    assert (tmp_path / "last").read_text().splitlines() == [str(twin)]


@pytest.mark.parametrize("where", ["arrange", "examine"])
def test_an_examination_that_fails_quotes_nothing(where: str) -> None:
    pipeline = beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([]))
    _ = pipeline | beam.Create([1, 2]) | RunRounds([Shares(where)], None, SecureNoise(), OneRecord())
    with pytest.raises(Exception, match=r"^Examining failed with ValueError") as error:
        pipeline.run().wait_until_finish()
    assert "4711" not in "".join(traceback.format_exception(error.value))


def test_what_parts_find_has_the_mark_of_what_they_examined() -> None:
    found = _examine(1, 0, Shares(), Spill(), Made(5, b"mark"))
    assert found == (0, Made(Tally(np.array([2, 1])), b"mark"))


def test_a_spilled_sum_is_the_sum_and_waits_in_the_file() -> None:
    spill = Spill()
    adds, rest = SpilledSum(spill), [Made(Tally(np.array([n])), b"m") for n in range(1, 8)]
    accumulators = []
    for some in (rest[:4], rest[4:]):
        accumulator = adds.create_accumulator()
        for made in some:
            accumulator = adds.add_input(accumulator, made)
        accumulators.append(adds.compact(accumulator))
    assert all(isinstance(total, Place) for ((_, total),) in accumulators)
    assert [number for ((number, _),) in accumulators] == [4, 3]
    assert adds.extract_output(adds.merge_accumulators(accumulators)) == Made(Tally(np.array([28])), b"m")
    assert adds.extract_output(accumulators[0]) == Made(Tally(np.array([10])), b"m")
    with pytest.raises(Exception, match=r"^The engine gave two different draws"):
        adds.add_input(adds.merge_accumulators(accumulators), Made(Tally(np.array([1])), b"other"), 7)


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_right_where_some_cannot_wait_in_the_file(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The disk is full for some pieces and not for others, as where another process frees some of it."""
    monkeypatch.setattr(module, "_MOST_HELD", 100)
    rng, written = np.random.default_rng(seed), os.pwrite

    def pwrite(file: int, data: Any, offset: int) -> int:
        if rng.random() < 0.5:
            raise OSError(errno.ENOSPC, "full")
        return written(file, data, offset)

    adds, expected = SpilledSum(Spill()), [Counts.of(np.empty(0, np.int64)) for _ in range(3)]
    accumulators = [adds.create_accumulator() for _ in range(3)]
    monkeypatch.setattr(os, "pwrite", pwrite)
    for _ in range(40):
        key = int(rng.integers(3))
        part = Counts.of(rng.integers(0, 10**6, rng.integers(100)))
        expected[key] += part
        accumulators[key] = adds.add_input(accumulators[key], Made(part, b"m"))
    kinds = {type(total) for accumulator in accumulators for _, total in accumulator[:-1]}
    assert kinds == {Place, Made}
    compacted = [adds.compact(accumulator) for accumulator in accumulators]
    assert [adds.extract_output(each).aggregate for each in compacted] == expected
    assert adds.held == 0


def test_waiting_sums_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time in proportion to what is added: with each look at all that wait, this would take minutes."""
    monkeypatch.setattr(module, "_MOST_HELD", 0)
    adds = SpilledSum(Spill())
    other = adds.add_input(adds.create_accumulator(), Made(Counts.of(np.arange(5)), b"m"))
    accumulator, looked = adds.create_accumulator(), []
    keys_of = module._keys_of
    monkeypatch.setattr(module, "_keys_of", lambda sums: looked.append(len(sums)) or keys_of(sums))
    for n in range(300):
        accumulator = adds.add_input(accumulator, Made(Counts.of(np.array([n])), b"m"))
    assert len(accumulator) == 300 and len(other) == 1 and max(looked) <= 2


@pytest.mark.parametrize("keys", [1, 40])
def test_sums_of_many_keys_are_not_held_together(monkeypatch: pytest.MonkeyPatch, keys: int) -> None:
    """Beyond a number of keys they wait in the file, and each is its sum. The only sum is always held."""
    monkeypatch.setattr(module, "_MOST_HELD", 200)
    adds, rng, most = SpilledSum(Spill()), np.random.default_rng(0), 0
    accumulators = [adds.create_accumulator() for _ in range(keys)]
    expected = [Counts.of(np.empty(0, np.int64)) for _ in range(keys)]
    for _ in range(12):
        for key in rng.permutation(keys):
            part = Counts.of(rng.integers(0, 1000, 30))
            expected[key] += part
            accumulators[key] = adds.add_input(accumulators[key], Made(part, b"m"))
            most = max(
                most, sum(len(total) for a in accumulators for _, total in a if isinstance(total, Made))
            )
    waiting = sum(isinstance(total, Place) for accumulator in accumulators for _, total in accumulator)
    assert (waiting > 6 * keys and most <= 200 + 12 * 30) if keys > 1 else not waiting
    assert adds.held == sum(len(t) for a in accumulators for _, t in a if isinstance(t, Made))
    for accumulator, total in zip(accumulators, expected, strict=True):
        ((number, place),) = compacted = adds.compact(accumulator)
        assert number == 12 and isinstance(place, Place)
        assert adds.extract_output(adds.merge_accumulators([compacted])).aggregate == total
    assert adds.held == 0


@dataclass(frozen=True)
class Everyone:
    """Release which records there are, shard by shard."""

    name: str
    floor: int = 1

    def summarize(self, block: Block, state: None) -> Counts:
        return Counts.of(block.ids.astype(np.int64))

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Counts:
        return aggregate


@pytest.mark.parametrize("options", REPEATED.values(), ids=REPEATED)
def test_large_sums_and_answers_wait_in_a_file(
    source: Source, tmp_path: Path, options: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner would hold several copies of each until the pipeline ends."""
    put, waited = Spill.put, []

    def noted(spill: Spill, piece: object) -> object:
        kept = put(spill, piece)
        waited.append((type(piece), type(kept)))
        return kept

    monkeypatch.setattr(Spill, "put", noted)
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        rounds = RunRounds([Everyone("ids")], None, SecureNoise(), Reader.of(source, UNIT_SQUARE), shards=3)
        _ = pipeline | ReadBlocks(source) | rounds | append_to(tmp_path / "seen")
    assert {kept for _, kept in waited} == {Place}
    assert [piece for piece, _ in waited].count(Held) == 1
    assert [piece for piece, _ in waited].count(Made) >= 3 + 1
    (seen,) = (tmp_path / "seen").read_text().splitlines()[:1]
    assert seen.startswith("Counts(")


@dataclass(frozen=True)
class Ramp:
    """Aggregates and states of 160 kB."""

    name: str
    floor: int | None = None

    def summarize(self, block: Block, state: Any) -> Counts:
        return Counts.of(np.arange(10_000))

    def release(self, aggregate: Counts, state: Any, noise: Noise) -> Counts:
        return aggregate


@dataclass(frozen=True)
class ExaminedRamp(Ramp):
    """As `Ramp`, and its aggregates are examined on workers, who find little."""

    examiners: int = 2
    shards: int = 3

    @property
    def examination(self) -> "ExaminedRamp":
        return self

    def arrange(self, aggregate: Stored, store: Store) -> Counts:
        return aggregate.whole()

    def examine(self, arranged: Counts, part: int) -> Counts:
        return Counts.of(np.arange(3))


class OneRecordOfEach:
    """Every element is one record of every question."""

    def blocks_of(self, element: int, due: list[int]) -> Iterator[tuple[int, Block]]:
        for number in due:
            yield from ((number, block) for block in OneRecord().blocks(element))


RAMPS = {"plain": [Ramp("a"), Ramp("b")], "floor": [Ramp("a", 1)], "examined": [ExaminedRamp("a")]}


@pytest.mark.parametrize("rounds", RAMPS.values(), ids=RAMPS)
def test_nothing_large_is_pickled_to_find_out_its_size(
    rounds: list[Ramp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beam would do so between all steps, for a figure that nobody needs. What is spilled is not copied."""
    dumps, sizes = pickle.dumps, []

    def noted(*args: Any, **options: Any) -> bytes:
        sizes.append(len(dumped := dumps(*args, **options)))
        return dumped

    monkeypatch.setattr(pickle, "dumps", noted)
    strands = [Strand(tuple(rounds), None), Strand((Ramp("c"),), None)]
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
        elements = pipeline | beam.Create([1, 2])
        one = elements | "One" >> RunRounds(rounds, None, SecureNoise(), OneRecord())
        several = elements | "Several" >> RunStrands(strands, SecureNoise(), OneRecordOfEach())
        _ = one | append_to(tmp_path / "one"), several | append_to(tmp_path / "several")
    assert len((tmp_path / "one").read_text().splitlines()) == 1
    assert len((tmp_path / "several").read_text().splitlines()) == 2
    assert 0 < max(sizes) < 20_000


@dataclass(frozen=True)
class Large(Ramp):
    """A round whose aggregates may be large."""

    most_counts: int = 1 << 18


def test_few_questions_with_large_aggregates_share_a_turn() -> None:
    """All strands of one question do, because its groups divide the records."""
    small, large = Ramp("a"), Large("b")
    assert turns_of(dict.fromkeys(range(5), small), range(5)) == [[0, 1, 2, 3, 4]]
    assert turns_of(dict.fromkeys(range(7), large), range(7)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert turns_of(dict.fromkeys(range(2, 9), large), [0] * 9) == [[2, 3, 4, 5, 6, 7, 8]]
    assert turns_of(dict.fromkeys(range(6), large), [0, 1, 2, 2, 3, 3]) == [[0, 1, 2, 3], [4, 5]]
    mixed = {0: large, 1: small, 2: large, 3: large, 4: small, 5: large, 6: small}
    assert turns_of(mixed, range(7)) == [[0, 1, 2, 3, 4], [5, 6]]


class Noted(OneRecordOfEach):
    """Notes when questions are read."""

    def __init__(self, notes: list[object]) -> None:
        self.notes = notes

    def blocks_of(self, element: int, due: list[int]) -> Iterator[tuple[int, Block]]:
        self.notes.append(due)
        return super().blocks_of(element, due)


def test_what_is_made_in_a_turn_is_handed_on_before_the_next_one() -> None:
    """So memory does not grow with the number of questions."""
    notes: list[Any] = []
    steps = {number: Step(Ramp("a")) for number in range(3)}
    kept = [(number, Held(Drawn(None))) for number in steps]
    name = PassName("a", "a", "a")
    for number, made in _summarize(1, Noted(notes), steps, [[0, 1], [2]], kept, name, b""):
        assert len(made) > 0
        notes.append(number)
    assert notes == [[0, 1], 0, 1, [2], 2]


def test_a_piece_is_what_it_was_after_it_left_the_process() -> None:
    coder = beam.coders.registry.get_coder(KEYED)
    number, made = coder.decode(coder.encode((3, Made(Tally(np.arange(3)), b"m"))))
    assert (number, made.aggregate.totals.tolist(), made.mark) == (3, [0, 1, 2], b"m")
    assert not PieceCoder().is_deterministic()


@pytest.mark.parametrize("marks", [[b"one"], [b"two", b"one"], [b"one", b"two"]])
def test_sections_of_two_draws_of_one_state_release_nothing(marks: list[bytes]) -> None:
    """Also of another strand of the same pass: workers merge it there."""
    spill = Spill()
    sent = [Made([spill.put(Tally(np.array([1])))], mark) for mark in marks]
    kept = [(0, Held(Drawn((), b"two")))]
    with pytest.raises(RoundError, match="two different draws of one state"):
        _examine_sections((0, sent), kept, {0: None}, {}, SecureNoise(), spill)
    fine = [Made([spill.put(Tally(np.array([1])))], b"two") for _ in range(2)]
    assert _examine_sections((0, fine), kept, {0: None}, {}, SecureNoise(), spill)[1].mark == b"two"


def test_a_floor_is_taken_off_the_merged_counts(tmp_path: Path) -> None:
    """Of one strand; the counts of another one, which has no floor, are as they were."""
    some = [(0, [5, 5, 7, 8]), (0, [5, 6, 6, 7]), (1, [5, 6]), (0, [6, 7, 8])]
    made = [(strand, Made(Counts.of(np.array(keys)), b"m")) for strand, keys in some]

    def save(merged: Any) -> None:
        strand, total = merged
        with (tmp_path / f"strand {strand}").open("a") as file:
            file.write(f"{total.aggregate.keys.tolist()} {total.aggregate.counts.tolist()}")

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
        _ = pipeline | beam.Create(made) | Merge({0: 2, 1: None}, 3) | "Save" >> beam.Map(save)
    assert (tmp_path / "strand 0").read_text() == "[5, 6, 7] [1, 1, 1]"
    assert (tmp_path / "strand 1").read_text() == "[5, 6] [1, 1]"
