"""Rows become disjoint blocks by unit, each answers once, and Beam gives what memory gives."""

import pickle
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.rounds import run_in_memory
from core.sample_and_aggregate.params import SampleAndAggregate
from core.sample_and_aggregate.task import SAMPLE_AND_AGGREGATE
from tests.core.seeded import SeededNoise
from tests.engines.golden import Recorded, Trace
from tests.transforms.tables import write, write_points
from transforms import split_units
from transforms.bound_units import Bounding
from transforms.embedded_runner import EmbeddedRunner
from transforms.evaluate_subsamples import (
    AnswerReader,
    EvaluateSubsamples,
    _Evaluate,
    evaluate_in_memory,
)
from transforms.list_files import File
from transforms.open_source import InputError, Source, open_source
from transforms.parse_expression import parse_expression
from transforms.plain_errors import RoundError
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_blocks import Descriptor, ReadBlocks, list_row_groups
from transforms.run_function import Function
from transforms.run_rounds import RunRounds
from transforms.split_units import Shard, Splitting, gather, read_keyed, read_split, split_rows

SALT = b"a salt of 16 byt"
LINE = Grid((0.0,), (4.0,), 2.0**-12)
MEAN = Function("tests.transforms.attacks:mean", LINE, seconds=60.0)
BLOCKS = 20


def splitting(source: Source, blocks: int = BLOCKS) -> Splitting:
    return Splitting(source.columns, source.unit, blocks, SALT)


def streams(source: Source, blocks: int = BLOCKS) -> dict[int, bytes]:
    """Return what is sent of each block that has rows."""
    cut = splitting(source, blocks)
    shards: dict[int, list] = {}
    for file in source.files:
        for descriptor in list_row_groups(file):
            for part, shard in split_rows(cut, descriptor):
                shards.setdefault(part, []).append(shard)
    return {number: rows for part, some in shards.items() for number, rows in gather(cut, part, some) if rows}


def gathered(source: Source, blocks: int = BLOCKS) -> dict[int, pa.Table]:
    """Return the rows of each block that has some."""
    return {number: pa.ipc.open_stream(rows).read_all() for number, rows in streams(source, blocks).items()}


def answers(source: Source, function: Function = MEAN) -> np.ndarray:
    """Return the answers of all blocks, -1 for a block that has none."""
    blocks = list(evaluate_in_memory(source, splitting(source), function))
    assert len(blocks) == BLOCKS
    found = np.full((BLOCKS, 1), -1)
    for block in blocks:
        found[block.ids.astype(np.int64)] = block.points
    return found


def table(
    folder: Path, units: object, x: object, row_group_size: int = 100, unit: str | None = "u"
) -> Source:
    return open_source(str(write(folder / "t.parquet", row_group_size, x=x, u=units).parent), ["x"], unit)


def people(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 150, n)


Units = Callable[[np.ndarray], pa.Array]

KINDS: dict[str, Units] = {
    "integers": lambda ids: pa.array(ids - 75),
    "text": lambda ids: pa.array([f"person {i} " * (1 + i % 4) for i in ids]),
    "categories": lambda ids: pa.array([f"N{i}" for i in ids]).dictionary_encode(),
    "bytes": lambda ids: pa.array([bytes([i % 256] * (i % 20)) + b"%d" % i for i in ids]),
    "days": lambda ids: pa.array(ids.astype("datetime64[D]")),
    "decimals": lambda ids: pa.array(ids).cast(pa.decimal128(21, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_of_a_unit_are_in_one_block(tmp_path: Path, kind: str) -> None:
    ids = people(3000)
    found = gathered(table(tmp_path, KINDS[kind](ids), ids.astype(float)))
    held = [set(rows["x"].to_pylist()) for rows in found.values()]
    assert sum(map(len, held)) == len(set(ids)) == len(set.union(*held))
    assert sum(len(rows) for rows in found.values()) == len(ids)
    assert len(found) > BLOCKS // 2


def test_the_salt_is_not_in_any_text(tmp_path: Path) -> None:
    source = table(tmp_path, people(9), np.zeros(9))
    assert repr(SALT) not in repr(splitting(source))
    assert repr(SALT) not in repr(Bounding.of(source, LINE, "one", SALT))


def test_the_rows_of_a_shard_and_their_number_are_not_in_any_text() -> None:
    """An error may quote what a step was given."""
    text = repr(Shard(1, 2, (7919,), b"a person"))
    assert "7919" not in text and "person" not in text


def test_blocks_are_even(tmp_path: Path) -> None:
    """Binomial(20,000, 1/20) strays by 6 sigma in one of 20 blocks with probability 4e-8."""
    n = 20_000
    source = table(tmp_path, np.zeros(n), np.arange(n, dtype=float), unit=None)
    sizes = [len(rows) for rows in gathered(source).values()]
    assert len(sizes) == BLOCKS and sum(sizes) == n
    assert max(abs(size - n / BLOCKS) for size in sizes) < 6 * np.sqrt(n / BLOCKS)


@pytest.mark.parametrize("unit", [None, "u"])
def test_blocks_do_not_depend_on_row_groups_and_keep_the_order_of_rows(tmp_path: Path, unit: str) -> None:
    n, ids = 2000, people(2000)
    cut = [
        gathered(table(tmp_path / str(size), ids, np.arange(n, dtype=float), size, unit)) for size in (n, 77)
    ]
    for number in range(BLOCKS):
        rows = cut[0][number]["x"].to_pylist()
        assert rows == sorted(rows) == cut[1][number]["x"].to_pylist()


def test_a_block_is_the_same_whichever_rows_arrive_first(tmp_path: Path) -> None:
    source = table(tmp_path, people(600), np.arange(600.0), 77)
    cut, sent = splitting(source), dict[int, list]()
    for descriptor in list_row_groups(source.files[0]):
        for part, shard in split_rows(cut, descriptor):
            sent.setdefault(part, []).append(shard)
    for part, shards in sent.items():
        assert len(shards) > 3
        assert dict(gather(cut, part, shards)) == dict(gather(cut, part, shards[::-1]))


@pytest.mark.parametrize("unit", [None, "u"])
def test_a_block_has_its_rows_in_the_order_of_files_and_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str | None
) -> None:
    """Whatever arrives first, also where a row group is split in several goes.

    Ties between what is split together would be broken by how many rows of others are in the same part.
    """
    monkeypatch.setattr(split_units, "_ROWS", 16)
    for file in range(3):
        write(tmp_path / f"{file}.parquet", 100, u=people(200, file), x=np.arange(200.0) + 200 * file)
    cut, sent = splitting(open_source(str(tmp_path), ["x"], unit), 300), dict[int, list]()
    for file in open_source(str(tmp_path), ["x"], unit).files:
        for descriptor in list_row_groups(file):
            for part, shard in split_rows(cut, descriptor):
                sent.setdefault(part, []).insert(0, shard)
    found = [rows for part, some in sent.items() for _, rows in gather(cut, part, some) if rows]
    places = [pa.ipc.open_stream(rows).read_all()["x"].to_pylist() for rows in found]
    assert sorted(place for each in places for place in each) == list(range(600))
    assert all(each == sorted(each) for each in places)


def test_a_function_sees_its_columns_in_the_order_of_the_job(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", z=[1.0, 2.0], a=[3, 4], m=[5.0, 6.0], u=[1, 2])
    for names in (["z", "a"], ["m", "z", "a"], ["a"]):
        found = gathered(open_source(str(tmp_path), names, "u"))
        assert {tuple(rows.column_names) for rows in found.values()} == {tuple(names)}


def test_keys_of_texts_follow_from_the_salt(tmp_path: Path) -> None:
    """Or else anyone could find two texts of one key, whose units would always be in one block."""
    source = table(tmp_path, [f"person {i}" for i in range(50)], np.zeros(50))
    (descriptor,) = list_row_groups(source.files[0])
    keys = [
        {*next(read_keyed(descriptor, ["x"], "u", salt, 99))[1].to_pylist()} for salt in (SALT, SALT[::-1])
    ]
    assert len(keys[0]) == len(keys[1]) == 50 and not keys[0] & keys[1]


@pytest.mark.parametrize("unit", [None, "u"])
def test_who_is_in_a_block_follows_from_the_salt(tmp_path: Path, unit: str | None) -> None:
    """Also where units are numbers, which are their own keys; two salts share a row in twenty."""
    source = table(tmp_path, np.arange(2000), np.arange(2000.0), 2000, unit)
    (descriptor,) = list_row_groups(source.files[0])
    found = []
    for salt in (SALT, SALT, SALT[::-1]):
        cut = replace(splitting(source), salt=salt)
        sent = {part: [shard] for part, shard in split_rows(cut, descriptor)}
        rows = {number: each for part, some in sent.items() for number, each in gather(cut, part, some)}
        found.append({n: {*pa.ipc.open_stream(each).read_all()["x"].to_pylist()} for n, each in rows.items()})
    assert found[0] == found[1]
    assert sum(len(found[0][number] & found[2][number]) for number in range(BLOCKS)) < 200


@pytest.mark.parametrize("kind", [pa.float64(), pa.float16(), pa.int8(), pa.bool_(), pa.decimal128(21, 2)])
def test_what_is_sent_of_a_block_depends_on_its_own_rows_alone(tmp_path: Path, kind: pa.DataType) -> None:
    """One unit less moves the rows after it from row group to row group; here all have nulls, or none."""
    ids, units = people(900), 150
    numbers = ids % 2 if kind == pa.bool_() else ids % 90
    values = pa.array(numbers.astype(np.float16)) if kind == pa.float16() else pa.array(numbers).cast(kind)
    whole = pa.table({"u": ids, "x": values})
    holes = pc.if_else(pc.equal(whole["u"], 0), None, whole["x"])
    seen = []
    for name, rows in (
        ("all", whole),
        ("less", whole.filter(pc.not_equal(whole["u"], 0))),
        ("null", whole.set_column(1, "x", holes)),
    ):
        for size in (7, 1000):
            (tmp_path / f"{name}{size}").mkdir()
            pq.write_table(rows, tmp_path / f"{name}{size}" / "t.parquet", row_group_size=size)
            seen.append(streams(open_source(str(tmp_path / f"{name}{size}"), ["x"], "u"), units))
    (its_own,) = {number for number in range(units) if seen[0].get(number) != seen[4].get(number)}
    assert len(seen[0]) > units / 2
    for other in seen[1:]:
        changed = {number for number in range(units) if seen[0].get(number) != other.get(number)}
        assert changed <= {its_own}
    assert seen[0] == seen[1]


def test_a_row_without_a_unit_is_no_record_and_other_nulls_stay(tmp_path: Path) -> None:
    units = pa.array([None, 1, 2, None, 3])
    found = gathered(table(tmp_path, units, pa.array([1, 2, None, 4, 5], pa.int16())))
    values = [value for rows in found.values() for value in rows["x"].to_pylist()]
    assert sorted(values, key=str) == [2, 5, None]
    assert all(rows.schema.field("x").type == pa.int16() for rows in found.values())


def test_a_block_holds_no_byte_of_another_and_nothing_of_the_file(tmp_path: Path) -> None:
    """Arrow pads buffers to 8 bytes; metadata that pandas writes holds the number of all rows."""
    n = 97
    columns = {
        name: pa.array(np.arange(n) + 17, kind)
        for name, kind in {"small": pa.int8(), "half": pa.int16(), "single": pa.float32()}.items()
    }
    columns["yes"] = pa.array([True] * n)
    columns["holes"] = pa.array([None if i % 2 else i for i in range(n)], pa.int8())
    rows = pa.table(columns)
    schema = pa.schema([field.with_metadata({"n": "97"}) for field in rows.schema], metadata={"stop": "97"})
    pq.write_table(rows.cast(schema), tmp_path / "t.parquet")
    found = gathered(open_source(str(tmp_path), list(columns)), 30)
    assert sum(len(rows) for rows in found.values()) == n
    for rows in found.values():
        assert rows.schema.metadata is None
        for name in rows.schema.names:
            assert rows.schema.field(name).metadata is None
            bits = rows[name].type.bit_width
            for buffer, width in zip(rows[name].chunk(0).buffers(), (1, bits), strict=True):
                if buffer is not None:
                    read = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
                    assert not read[width * len(rows) :].any()


def test_the_number_of_elements_does_not_depend_on_which_blocks_have_rows(tmp_path: Path) -> None:
    def elements(rows: int, blocks: int) -> int:
        source = table(tmp_path / str(rows), people(rows), np.arange(rows, dtype=float), 1000)
        return sum(
            1 for d in list_row_groups(source.files[0]) for _ in split_rows(splitting(source, blocks), d)
        )

    assert elements(1, 20) == elements(2, 20) == elements(900, 20) == 20
    assert elements(1, 5000) == elements(900, 5000) < 300


def test_files_that_differ_in_what_may_be_null(tmp_path: Path) -> None:
    ids = people(400)
    for name, nullable in (("a", True), ("b", False)):
        schema = pa.schema([pa.field("u", pa.int64()), pa.field("x", pa.float64(), nullable)])
        pq.write_table(pa.table({"u": ids, "x": ids / 100.0}, schema), tmp_path / f"{name}.parquet")
    found = answers(open_source(str(tmp_path), ["x"], "u"))
    assert (found != LINE.extents[0] // 2).all()


@pytest.mark.parametrize(
    "kinds",
    [
        (pa.int8(), pa.int16(), pa.int64()),
        (pa.uint8(), pa.uint64()),
        (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.binary(), pa.large_binary(), pa.binary(3)),
    ],
    ids=lambda kinds: str(kinds[0]),
)
def test_a_unit_is_in_one_block_though_files_write_it_in_other_widths(
    tmp_path: Path, kinds: list[pa.DataType]
) -> None:
    whole = pa.types.is_integer(kinds[0])
    some = [i % 120 if whole else f"{i % 120:03}" for i in range(600)]
    if pa.types.is_signed_integer(kinds[0]):
        some = [i - 60 for i in some]
    for part, kind in enumerate(kinds):
        units = pa.array([u.encode() for u in some] if pa.types.is_binary(kinds[0]) else some)
        units = units.dictionary_encode() if pa.types.is_dictionary(kind) else units.cast(kind)
        pq.write_table(pa.table({"u": units, "x": np.arange(600.0) % 120}), tmp_path / f"{part}.parquet")
    found = gathered(open_source(str(tmp_path), ["x"], "u"))
    held = [set(rows["x"].to_pylist()) for rows in found.values()]
    assert sum(map(len, held)) == len(set.union(*held)) == 120


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ((pa.int64(), pa.string()), "u is int64 in 0.parquet but string in 1.parquet"),
        ((pa.int64(), pa.uint64()), "u is int64 in 0.parquet but uint64 in 1.parquet"),
        ((pa.string(), pa.binary()), "u is string in 0.parquet but binary in 1.parquet"),
    ],
)
def test_units_of_two_kinds_are_refused(tmp_path: Path, kinds: list[pa.DataType], says: str) -> None:
    for part, kind in enumerate(kinds):
        units = (
            pa.array([1, 2]).cast(pa.string()).cast(kind)
            if kind == pa.binary()
            else pa.array([1, 2]).cast(kind)
        )
        pq.write_table(pa.table({"u": units, "x": [1.0, 2.0]}), tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match=says) as caught:
        open_source(str(tmp_path), ["x"], "u")
    assert "\n" not in str(caught.value)


def test_one_unit_more_changes_one_answer_and_a_replaced_one_two(tmp_path: Path) -> None:
    ids, x = people(3000), np.random.default_rng(1).uniform(0, 4, 3000)
    before = answers(table(tmp_path / "all", ids, x))
    changed = []
    for unit in range(4):
        without = answers(table(tmp_path / f"without {unit}", ids[ids != unit], x[ids != unit]))
        changed.append(int((without != before).any(axis=1).sum()))
        replaced = np.where(ids == unit, 1000 + unit, ids)
        other = answers(table(tmp_path / f"replaced {unit}", replaced, np.where(ids == unit, 3.9, x)))
        assert (other != before).any(axis=1).sum() <= 2
    assert max(changed) == 1 and sum(changed) >= 3  # a removed unit is seen where it was


def test_blocks_without_rows_have_no_answer(tmp_path: Path) -> None:
    assert (answers(table(tmp_path / "none", people(0), np.empty(0))) == -1).all()
    one = answers(table(tmp_path / "one", people(1), np.ones(1)))
    assert sorted(one[:, 0].tolist()) == [-1] * (BLOCKS - 1) + [4096]


def test_a_failed_block_is_an_element_without_a_record() -> None:
    (block,) = AnswerReader(3).blocks((7, None))
    assert block.points.shape == (0, 3) and block.ids.shape == (0,)
    (block,) = AnswerReader(3).blocks((7, (1, 2, 3)))
    assert block.points.tolist() == [[1, 2, 3]] and block.ids.tolist() == [7]


def test_a_unit_must_be_a_plain_value(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"input\.unit: u is list"):
        table(tmp_path, [[1], [2]], [1.0, 2.0])


ROWS = [3000, 0, 1, 2000]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("subsamples")
    for row_groups in (1, 3, 16):
        write_points(folder / str(row_groups), ROWS, row_groups)
    write_points(folder / "empty", [0], 1)
    return folder


PLANE = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-10)
CENTER = Function("tests.transforms.attacks:center", PLANE, seconds=60.0)


def rounds_of(name: str) -> tuple[list[Recorded], Trace]:
    params = SampleAndAggregate(BLOCKS, name, 0.9)
    plan = SAMPLE_AND_AGGREGATE.plan(PLANE, params, Budget(1.0, 1e-6), Neighbors("add_or_remove_one"), SALT)
    return [Recorded(step) for step in plan.rounds], Trace((), plan.start)


def in_memory(folder: Path, name: str) -> Trace:
    source = open_source(str(folder), ["x", "y"])
    rounds, start = rounds_of(name)
    blocks = evaluate_in_memory(source, splitting(source), CENTER)
    return run_in_memory(rounds, blocks, start, SeededNoise(0, factor=0.0))


def in_beam(folder: Path, name: str, output: Path, **options: object) -> list[Trace]:
    source = open_source(str(folder), ["x", "y"])
    rounds, start = rounds_of(name)

    def append(state: object) -> None:
        with output.open("ab") as file:
            pickle.dump(state, file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        elements = pipeline | ReadBlocks(source) | EvaluateSubsamples(splitting(source), CENTER)
        last = elements | RunRounds(rounds, start, SeededNoise(0, factor=0.0), AnswerReader(2))
        last | "Save" >> beam.Map(append)
    states = []
    with output.open("rb") as file:
        while file.peek(1):
            states.append(pickle.load(file))
    return states


WAYS = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}
CASES = [(way, cut) for way in ("one_thread", "two_threads") for cut in ("1", "16", "empty")]


@pytest.mark.parametrize(("way", "row_groups"), [*CASES, ("two_processes", "16")])
def test_beam_gives_what_memory_gives(data: Path, tmp_path: Path, way: str, row_groups: str) -> None:
    expected = in_memory(data / ("empty" if row_groups == "empty" else "3"), "smooth_median")
    (got,) = in_beam(data / row_groups, "smooth_median", tmp_path / "state", **WAYS[way])
    assert got.aggregates == expected.aggregates
    answered = 0 if row_groups == "empty" else BLOCKS
    assert len(got.aggregates) == 1 and len(got.aggregates[0].blocks) == answered
    assert repr(got.state) == repr(expected.state)


def test_a_function_with_randomness_answers_once_though_bundles_are_repeated(
    data: Path, tmp_path: Path
) -> None:
    source = open_source(str(data / "3"), ["x", "y"])
    chance = replace(CENTER, place="tests.transforms.attacks:chance")
    options = PipelineOptions([], direct_runner_bundle_repeat=2)

    def append(answer: object) -> None:
        with (tmp_path / "answers").open("a") as file:
            file.write(f"{answer}\n")

    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        kept = pipeline | ReadBlocks(source) | EvaluateSubsamples(splitting(source), chance)
        kept | "One" >> beam.Map(append)
        kept | "Again" >> beam.Reshuffle() | "Two" >> beam.Map(append)
    written = (tmp_path / "answers").read_text().splitlines()
    assert len(written) >= 4 * BLOCKS
    assert len(set(written)) == BLOCKS


@pytest.mark.parametrize("name", ["center_of_attention", "one_cluster", "average"])
def test_every_aggregator_in_beam(data: Path, tmp_path: Path, name: str) -> None:
    (got,) = in_beam(data / "3", name, tmp_path / "state", **WAYS["two_threads"])
    assert repr(got) == repr(in_memory(data / "3", name))


def test_the_golden_answers_are_not_trivial(data: Path) -> None:
    (outputs,) = in_memory(data / "3", "average").aggregates
    assert len(np.unique(outputs.points, axis=0)) > BLOCKS // 2
    assert np.abs(PLANE.restore(outputs.points) - [0.4, 0.6]).max() < 0.1


def test_a_function_that_cannot_be_imported_fails_the_pipeline_in_a_sentence(data: Path) -> None:
    source = open_source(str(data / "1"), ["x", "y"])
    nowhere = replace(CENTER, place="nowhere_at_all:f")
    with (
        pytest.raises(Exception, match=r"params\.function is nowhere_at_all:f"),
        beam.Pipeline(runner=EmbeddedRunner()) as pipeline,
    ):
        _ = pipeline | ReadBlocks(source) | EvaluateSubsamples(splitting(source), nowhere)


def test_a_block_that_cannot_be_evaluated_is_not_quoted_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is no failure of the function, which would be a block without an answer."""
    closed = []

    class Failing:
        def __init__(self, _: Function) -> None:
            pass

        def run(self, rows: bytes) -> None:
            raise ValueError("a row of person 4711")

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr("transforms.evaluate_subsamples.FunctionRunner", Failing)
    step = _Evaluate(splitting(table(tmp_path, people(9), np.zeros(9))), MEAN)
    step.setup()
    with pytest.raises(RoundError, match=r"^Evaluating subsamples failed with ValueError at ") as caught:
        list(step.process((0, [])))
    assert "4711" not in "".join(traceback.format_exception(caught.value))
    step.teardown()
    assert closed == [step.runner]


def test_a_row_has_one_identity_whichever_rows_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of its place in the file, also where rows of earlier batches are left out."""
    monkeypatch.setattr(split_units, "_ROWS", 16)
    x = np.random.default_rng(3).integers(0, 2, 400)
    path = str(write(tmp_path / "t.parquet", 100, x=x).parent)
    some = Preparation(where=parse_expression("x == 1"))

    def identities(preparation: Preparation) -> np.ndarray:
        source = open_source(path, ["x"], preparation=preparation)
        cut = replace(splitting(source), preparation=preparation)
        read = [read_split(cut, each) for each in list_row_groups(source.files[0])]
        return np.concatenate([ids.to_numpy() for batches in read for _, ids, _, _ in batches])

    everyone, kept = identities(AS_THEY_ARE), identities(some)
    assert len(set(everyone.tolist())) == len(x)
    assert np.array_equal(kept, everyone[x == 1])


def test_no_row_is_lost_between_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of large rows are smaller than what is split at a time, of which they need not be parts."""
    batches = [pa.record_batch({"x": [i, i + 1, i + 2], "u": list("abc")}) for i in (0, 3, 6)]
    monkeypatch.setattr("transforms.split_units.read_prepared", lambda *_: ((each, None) for each in batches))
    read = read_keyed(Descriptor(File("p", "n"), 0, 0), ["x"], "u", SALT, 4)
    found = [(rows["x"].to_pylist(), len(units)) for rows, units in read]
    assert found == [([0, 1, 2, 3], 4), ([4, 5, 6, 7], 4), ([8], 1)]
