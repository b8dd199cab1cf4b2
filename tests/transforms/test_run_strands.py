"""Several questions in the same steps: each one's aggregates and states are those of a run of its own."""

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import transforms.read_batches
import transforms.split_units
from core.aggregate import Tally
from core.domain import Grid
from core.labels import Labels
from core.noise import Noise
from core.rounds import Block, Strand, looks_of, run_in_memory, run_strands_in_memory
from core.sampling import renamed
from core.secure_noise import SecureNoise
from tests.engines.golden import GRID, NOISELESS, OTHERS, Trace, recorded
from tests.transforms.tables import write_points
from tests.transforms.test_run_rounds import Echo
from transforms.bound_together import (
    BoundingOfQuestions,
    BoundTogether,
    bound_together_in_memory,
)
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.embedded_runner import EmbeddedRunner
from transforms.group_keys import GroupKeys
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, ReaderOfQuestions, read_in_memory
from transforms.records import Drawn, Held, held_by
from transforms.run_rounds import RunStrands, passes_of, steps_of

LINE = Grid((0.0,), (1.0,), 2.0**-10)
NAMES = ("every_kind", "one_cluster", "triangles", "all_below_the_floor", "mst_cost")
"""Strands of one to five rounds: with floors and without, with samples, and with an examination."""

MODES = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = write_points(tmp_path_factory.mktemp("strands") / "data", [3000, 0, 1, 2000], 3)
    return open_source(str(folder), ["x", "y"])


def strands(names: Sequence[str] = NAMES) -> list[Strand]:
    return [Strand(tuple(rounds), start) for rounds, start in map(recorded, names)]


def in_beam(
    source: Source,
    output: Path,
    strands: Sequence[Strand],
    records: Any,
    prepare: Any = None,
    names: bytes = b"",
    **options: Any,
) -> list[Any]:
    """Return the last state of every strand, each of which must come once."""
    options.setdefault("direct_running_mode", "in_memory")

    def keep(last: tuple[int, object]) -> None:
        with (output / str(last[0])).open("xb") as file:
            pickle.dump(last[1], file)

    output.mkdir()
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        elements = pipeline | ReadBlocks(source)
        elements = elements if prepare is None else elements | prepare
        elements | RunStrands(strands, NOISELESS, records, names=names) | "Save" >> beam.Map(keep)
    assert len(list(output.iterdir())) == len(strands)
    return [pickle.loads((output / str(number)).read_bytes()) for number in range(len(strands))]


def assert_equal(got: Sequence[Trace], expected: Sequence[Trace]) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        assert len(ours.aggregates) == len(theirs.aggregates)
        for one, other in zip(ours.aggregates, theirs.aggregates, strict=True):
            assert type(one) is type(other) and one == other
        if len(ours.aggregates) > 1:  # the answer of a graph is drawn from noise that is not scaled
            assert repr(ours.state) == repr(theirs.state)


@pytest.mark.parametrize("mode", MODES)
def test_every_strand_is_what_it_is_alone(source: Source, tmp_path: Path, mode: str) -> None:
    blocks = list(read_in_memory(source, GRID))
    expected = run_strands_in_memory(strands(), [blocks] * len(NAMES), NOISELESS)
    assert len({len(trace.aggregates) for trace in expected}) > 2
    records = ReaderOfQuestions((Reader.of(source, GRID),) * len(NAMES))
    assert_equal(in_beam(source, tmp_path / "out", strands(), records, **MODES[mode]), expected)


def test_strands_that_look_run_beside_strands_that_release(source: Source, tmp_path: Path) -> None:
    names = [name for name in OTHERS if name.startswith(("wide", "quantiles", "cdf", "median"))]
    several = strands([*names, "every_kind"])
    looks = [sum(map(looks_of, strand.rounds)) for strand in several]
    assert max(looks) > 0 and min(looks) == 0
    assert len(passes_of(several)) == max(map(len, map(steps_of, several)))
    blocks = list(read_in_memory(source, GRID))
    records = ReaderOfQuestions((Reader.of(source, GRID),) * len(several))
    got = in_beam(source, tmp_path / "out", several, records)
    assert_equal(got, run_strands_in_memory(several, [blocks] * len(several), NOISELESS))


def test_strands_that_end_in_different_passes_are_not_flattened(source: Source) -> None:
    """Flink takes no Flatten of what ends beside what goes on: "consumed but never produced"."""
    pipeline = beam.Pipeline()
    records = ReaderOfQuestions((Reader.of(source, GRID),) * len(NAMES))
    _ = pipeline | ReadBlocks(source) | RunStrands(strands(), NOISELESS, records)
    steps = pipeline.to_runner_api().components.transforms.values()
    assert "beam:transform:flatten:v1" not in {step.spec.urn for step in steps}


@dataclass(frozen=True)
class Records:
    """A round that counts records, sums their points and groups, and sums what was left out."""

    name: str
    floor: None = None

    def summarize(self, block: Block, state: tuple[int, ...]) -> Tally:
        outside = np.zeros(4, np.int64) if block.outside is None else np.resize(block.outside, 4)
        ids = int((block.ids % np.uint64(1009)).sum())
        named = [] if block.groups is None else block.labels[block.groups].tolist()
        groups = sum(map(crc32, named))
        return Tally(np.array([len(block.ids), block.points.sum(), ids, groups, *outside]))

    def release(self, aggregate: Tally, state: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return (*state, *aggregate.totals.tolist())


def counting(number: int, rounds: int) -> Strand:
    return Strand(tuple(Records(f"{number}-{i}") for i in range(rounds)), ())


def test_each_question_has_its_own_columns_and_grid_and_rows_are_read_once(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [("x",), ("y",), ("x", "y"), ("x",)]
    grids = [LINE, LINE, GRID, replace(LINE, step=2.0**-4)]
    readers = tuple(Reader(c, grid, checked=True) for c, grid in zip(asked, grids, strict=True))
    several = [counting(number, rounds) for number, rounds in enumerate((1, 3, 2, 1))]
    read: Counter[tuple[str, ...]] = Counter()
    inner = transforms.read_batches._read

    def noted(file: object, row_group: object, used: Sequence[str], *more: Any) -> Any:
        read[tuple(sorted(used))] += 1
        return inner(file, row_group, used, *more)

    monkeypatch.setattr(transforms.read_batches, "_read", noted)
    got = in_beam(source, tmp_path / "out", several, ReaderOfQuestions(readers))
    assert set(read) == {("x", "y"), ("y",)}  # the third pass needs y alone
    assert read["x", "y"] == 2 * read["y",]
    for number, reader in enumerate(readers):
        blocks = [
            block
            for file in source.files
            for part in transforms.read_blocks.list_row_groups(file)
            for block in reader.blocks(part)
        ]
        assert got[number] == run_in_memory(several[number].rounds, blocks, (), NOISELESS)
    assert len({state[:8] for state in got}) == 4


def test_a_run_with_names_gives_records_other_identities(source: Source, tmp_path: Path) -> None:
    """Samples follow from identities, and a run with the salt of an earlier one has samples of its own."""
    names, strand = b"sixteen secrets!", counting(0, 2)
    records = ReaderOfQuestions((Reader.of(source, GRID),))
    got = in_beam(source, tmp_path / "out", [strand], records, names=names)
    blocks = [replace(block, ids=renamed(block.ids, names)) for block in read_in_memory(source, GRID)]
    assert got == [run_in_memory(strand.rounds, blocks, (), NOISELESS)]


def counted(function: Any, done: Counter[str]) -> Any:
    def counting(*given: Any) -> Any:
        done[function.__name__] += 1
        return function(*given)

    return counting


@pytest.mark.parametrize("checked", [False, True])
def test_units_become_records_in_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """One of them, or where a question has bounds on contributions as many as these allow."""
    rng = np.random.default_rng(3)
    columns = {"x": rng.uniform(-0.2, 1.1, 2000), "y": rng.uniform(size=2000), "t": rng.integers(0, 99, 2000)}
    columns |= {"city": rng.choice(["a", "b", "c", "d"], 2000), "kind": columns["t"] % 3}
    who = np.where(rng.uniform(size=2000) < 0.1, None, rng.integers(0, 300, 2000).astype(str))
    pq.write_table(pa.table({**columns, "who": pa.array(who)}), tmp_path / "rows.parquet", row_group_size=300)
    source = open_source(str(tmp_path / "rows.parquet"), ["x", "y"], "who")
    salt = b"sixteen secrets!"
    own = (
        Bounding(("x",), LINE, "who", "mean", salt, shards=5, checked=checked),
        Bounding(("x", "y"), GRID, "who", "one", salt, shards=3),
        Bounding(("y",), LINE, "who", "last", salt, shards=4, checked=checked, order="t"),
    )
    single = Bounding(("y",), LINE, "who", "one", salt, shards=6, checked=checked)
    grouped = (
        Contributing(single, GroupKeys(("city",), (None,)), 2, 2),
        Contributing(single, GroupKeys(("kind", "city"), (None, None), Labels(['[0,"a"]', '[2,"d"]'])), 1, 3),
        Contributing(single, None, 1, 4),
    )
    bounding = BoundingOfQuestions((*own, *grouped))
    expected = [list(bound_in_memory(source, each)) for each in (*own, *grouped)]
    several = [counting(number, 1 + number % 3) for number in range(6)]
    states = run_strands_in_memory(several, expected, NOISELESS)
    done: Counter[str] = Counter()
    for module, name in ((transforms.read_batches, "_read"), (transforms.split_units, "unit_keys")):
        monkeypatch.setattr(module, name, counted(getattr(module, name), done))
    blocks = bound_together_in_memory(source, bounding)
    assert done == {"_read": 7, "unit_keys": 7}  # once for each row group
    assert run_strands_in_memory(several, blocks, NOISELESS) == states
    got = in_beam(source, tmp_path / "out", several, bounding.readers, BoundTogether(bounding))
    assert got == states
    assert all(0 < state[0] <= 300 for state in got[:3])
    assert all(300 < state[0] <= 1200 for state in (got[3], got[5])) and 0 < got[4][0] <= 900
    assert [state[3] > 0 for state in got] == [False] * 3 + [True, True, False]


def test_a_strand_with_two_states_ends_the_run() -> None:
    one, other = (1, Held(Drawn((), b"one"))), (1, Held(Drawn((), b"other")))
    assert held_by([one], [1]) == dict([one])
    with pytest.raises(RuntimeError, match="two states of one question"):
        held_by([one, other], [1])


@pytest.mark.parametrize("lengths", [(1, 3, 2), (2, 2, 2)])
def test_repeated_bundles_show_one_draw_of_each_strand(
    source: Source, tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    several = [Strand(tuple(Echo(str(i)) for i in range(rounds)), ()) for rounds in lengths]
    records = ReaderOfQuestions((Reader.of(source, GRID),) * 3)
    options = PipelineOptions([], direct_runner_bundle_repeat=3)

    def append(last: tuple[int, object], file: str) -> None:
        with (tmp_path / file).open("a") as opened:
            opened.write(f"{last}\n")

    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        last = pipeline | ReadBlocks(source) | RunStrands(several, SecureNoise(), records)
        last | "One" >> beam.Map(append, "one")
        last | "Again" >> beam.Reshuffle() | "Two" >> beam.Map(append, "two")
    seen = {*(tmp_path / "one").read_text().splitlines(), *(tmp_path / "two").read_text().splitlines()}
    assert len(seen) == 3


def test_what_is_drawn_is_kept_also_beside_a_look(source: Source) -> None:
    """Else a retried consumer would read another draw; where all strands look, nothing is drawn."""
    drawing, (looking,) = Strand((Echo("0"), Echo("1")), ()), strands(["wide_median"])
    assert [step.look for step in steps_of(looking)] == [True, True, False]
    for several, kept in (([looking], [False, False, True]), ([looking, drawing], [True] * 3)):
        pipeline = beam.Pipeline()
        records = ReaderOfQuestions((Reader.of(source, GRID),) * len(several))
        _ = pipeline | ReadBlocks(source) | RunStrands(several, NOISELESS, records)
        steps = pipeline.to_runner_api().components.transforms.values()
        names = {step.unique_name for step in steps}
        assert [f"RunStrands/pass {i}/Release" in names for i in (1, 2, 3)] == [True] * 3
        assert [f"RunStrands/pass {i}/Keep" in names for i in (1, 2, 3)] == kept
