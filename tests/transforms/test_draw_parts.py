"""A round in parts gives on every runner what it gives in memory, once, and no part depends on the cut."""

import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.aggregate import Counts
from core.draws import Laplace
from core.histogram.cells import Cells
from core.histogram.found import Table
from core.histogram.sparse import SparseHistogram
from core.input_checks import Checked, CheckedRound
from core.mechanisms.stability import StabilityHistogram
from core.noise import Noise
from core.rounds import Block, RoundInParts, run_in_memory
from core.secure_noise import SecureNoise
from tests.core.seeded import SeededNoise
from tests.transforms.tables import UNIT_SQUARE, write_points
from transforms import draw_parts
from transforms.draw_parts import Pieces
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import Source, open_source
from transforms.plain_errors import RoundError
from transforms.read_blocks import ReadBlocks, Reader, read_in_memory
from transforms.records import Drawn
from transforms.run_rounds import RunRounds

NOISELESS = SeededNoise(0, factor=0.0)
COUNT = StabilityHistogram(what="cells", scale=1.0, threshold=3, l1=1, times=7, disjoint=True)
SPARSE = SparseHistogram(Cells(UNIT_SQUARE, (50, 50)), COUNT, floor=1, parts=7)

MODES = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
    "repeated": {"direct_runner_bundle_repeat": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("points")
    for row_groups in (1, 16):
        write_points(made / str(row_groups), [6000, 0, 1, 2000], row_groups)
    write_points(made / "empty", [0], 1)
    return made


def source_of(folder: Path) -> Source:
    return open_source(str(folder), ["x", "y"])


def run(source: Source, step: RoundInParts, start: object, noise: Noise, output: Path, **options: object):
    """Return the parts by number, each of them as often as it was handed on."""
    output.mkdir()

    def keep(part: tuple[int, object]) -> None:
        for copy in range(100):
            try:
                with (output / f"{part[0]}-{copy}").open("xb") as file:
                    return pickle.dump(part[1], file)
            except FileExistsError:
                continue

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        reader = Reader.of(source, UNIT_SQUARE)
        rounds = RunRounds([step], start, noise, reader)
        _ = pipeline | ReadBlocks(source) | rounds | "Save" >> beam.Map(keep)
    found: dict[int, list] = {}
    for path in sorted(output.iterdir()):
        found.setdefault(int(path.name.split("-")[0]), []).append(pickle.loads(path.read_bytes()))
    return found


def assert_same(one: Table, other: Table) -> None:
    assert np.array_equal(one.keys, other.keys)
    assert np.array_equal(one.counts, other.counts)


@pytest.mark.parametrize("row_groups", [1, 16])
@pytest.mark.parametrize("mode", MODES)
def test_all_parts_together_are_the_table_in_memory(folder, tmp_path, mode, row_groups) -> None:
    source = source_of(folder / str(row_groups))
    expected = run_in_memory([SPARSE], read_in_memory(source_of(folder / "1"), UNIT_SQUARE), None, NOISELESS)
    found = run(source, SPARSE, None, NOISELESS, tmp_path / "out", **MODES[mode])
    assert sorted(found) == list(range(7))
    assert_same(Table.joined([copies[0] for copies in found.values()]), expected)
    assert len(expected.keys) > 100
    for number, copies in found.items():
        assert_same(copies[0], copies[-1])
        shards = Counts(copies[0].keys, copies[0].counts).split(7)
        assert [len(shard) for shard in shards] == [len(copies[0].keys) * (i == number) for i in range(7)]


def test_an_empty_input_has_all_parts(folder, tmp_path) -> None:
    found = run(source_of(folder / "empty"), SPARSE, None, SecureNoise(), tmp_path / "out")
    assert {number: len(part.keys) for number, (part,) in found.items()} == dict.fromkeys(range(7), 0)


@pytest.mark.parametrize("mode", ["one_thread", "two_threads"])
def test_repeated_bundles_leave_one_draw(folder, tmp_path, mode) -> None:
    """The noise is wide: two draws of a part are equal with negligible probability."""
    wide = replace(SPARSE, count=replace(COUNT, scale=1e6), floor=0)
    options = MODES[mode] | {"direct_runner_bundle_repeat": 3}
    found = run(source_of(folder / "16"), wide, None, SecureNoise(), tmp_path / "out", **options)
    assert len(found) == 7
    for copies in found.values():
        assert len(copies) >= 4
        for copy in copies[1:]:
            assert_same(copies[0], copy)


def test_several_parts_go_together_where_there_are_many(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(draw_parts, "_GROUPS", 3)
    source = source_of(folder / "16")
    found = run(source, SPARSE, None, NOISELESS, tmp_path / "out", **MODES["one_thread"])
    assert sorted(found) == list(range(7))
    expected = run_in_memory([SPARSE], read_in_memory(source, UNIT_SQUARE), None, NOISELESS)
    assert_same(Table.joined([part for (part,) in found.values()]), expected)
    for number, (part,) in found.items():
        assert len(Counts(part.keys, part.counts).split(7)[number]) == len(part.keys)


def test_few_cells_are_held_at_a_time(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(draw_parts, "_CELLS", 100)
    monkeypatch.setattr("transforms.read_blocks.BLOCK_VALUES", 200)
    held = []
    real = Counts.merged.__func__

    def merged(cls, parts):
        held.append(sum(map(len, parts)))
        return real(cls, parts)

    monkeypatch.setattr(Counts, "merged", classmethod(merged))
    source = source_of(folder / "1")
    found = run(source, SPARSE, None, NOISELESS, tmp_path / "out", **MODES["one_thread"])
    assert max(held[:30]) <= 200
    expected = run_in_memory([SPARSE], read_in_memory(source, UNIT_SQUARE), None, NOISELESS)
    assert_same(Table.joined([part for (part,) in found.values()]), expected)


def test_counts_of_the_checks_are_in_the_first_part(folder, tmp_path) -> None:
    step = CheckedRound(SPARSE, 2, Laplace.of("left out", 1.0, 4))
    source = source_of(folder / "16")
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
        reader = Reader.of(source, UNIT_SQUARE, checked=True)
        rounds = RunRounds([step], Checked(None), NOISELESS, reader)
        _ = (
            pipeline
            | ReadBlocks(source)
            | rounds
            | beam.Map(lambda part: (tmp_path / str(part[0])).write_bytes(pickle.dumps(part[1])))
        )
    found = [pickle.loads((tmp_path / str(number)).read_bytes()) for number in range(7)]
    assert sum(found[0].left_out) > 100
    assert all(part.left_out == part.moved == () for part in found[1:])
    blocks = list(Reader.of(source, UNIT_SQUARE, checked=True).blocks(next(_descriptors(source))))
    assert all(block.outside is not None for block in blocks)
    expected = run_in_memory([SPARSE], read_in_memory(source, UNIT_SQUARE), None, NOISELESS)
    assert_same(Table.joined([part.state for part in found]), expected)


def _descriptors(source: Source):
    from transforms.read_blocks import list_row_groups

    return (each for file in source.files for each in list_row_groups(file))


def test_two_draws_of_a_state_release_nothing() -> None:
    counts = Counts(np.array([1]), np.array([9]))
    drawn, spill = Drawn(None, b"one"), draw_parts.Spill()
    for marks, fails in ((["one", "other"], True), (["one", "one"], False)):
        pieces = [Pieces([[counts]], mark.encode()) for mark in marks]
        parts = draw_parts._release((0, pieces), SPARSE, drawn, SecureNoise(), lambda *part: part, spill)
        if fails:
            with pytest.raises(RoundError, match="two different draws"):
                next(parts)
        else:
            assert next(parts) is not None


@dataclass(frozen=True)
class Quoting:
    """A round in parts that fails by a text that quotes rows."""

    where: str
    parts: int = 2
    floor: None = None
    name: str = "quoting"
    purpose: str = "nothing"

    def summarize(self, block: Block, state: object) -> Counts:
        self._fail("summarize")
        return Counts.of(block.points[:, 0])

    def release(self, aggregate: Counts, state: object, noise: Noise) -> object:
        raise NotImplementedError

    def release_part(self, number: int, aggregate: Counts, state: object, noise: Noise) -> object:
        self._fail("release_part")
        return None

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise ValueError("row 4711")


@pytest.mark.parametrize("where", ["summarize", "release_part"])
def test_errors_are_plain(folder, tmp_path, where) -> None:
    with pytest.raises(Exception, match="Round quoting failed with ValueError at test_draw_parts") as error:
        run(source_of(folder / "1"), Quoting(where), None, NOISELESS, tmp_path / "out")
    assert "4711" not in str(error.value)
