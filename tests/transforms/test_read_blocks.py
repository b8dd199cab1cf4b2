from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

from core.domain import Grid
from core.labels import Labels
from core.rounds import Block
from tests.transforms.tables import UNIT_SQUARE, write, write_points
from transforms.embedded_runner import EmbeddedRunner
from transforms.group_keys import GroupKeys
from transforms.open_source import File, InputError, open_source
from transforms.read_blocks import (
    Descriptor,
    ReadBlocks,
    Reader,
    list_row_groups,
    read_blocks,
    read_in_memory,
    row_ids,
    to_block,
)

LINE = Grid((0.0,), (100.0,), 0.5)


def read(path: Path, columns: list[str], grid: Grid) -> Block:
    blocks = list(read_in_memory(open_source(str(path), columns), grid))
    assert all(block.points.shape == (len(block.ids), grid.dimension) for block in blocks)
    assert all(block.points.dtype == np.int64 and block.ids.dtype == np.uint64 for block in blocks)
    return Block(np.concatenate([b.points for b in blocks]), np.concatenate([b.ids for b in blocks]))


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, *DECIMALS], ids=str)
def test_every_numeric_type_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    write(tmp_path / "a.parquet", x=pa.array([3, None, 7, 120], pa.int8()).cast(kind))
    block = read(tmp_path, ["x"], LINE)
    assert block.points.ravel().tolist() == [6, 14, 200]


def test_booleans_are_zero_and_one(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[True, None, False])
    assert read(tmp_path, ["x"], LINE).points.ravel().tolist() == [2, 0]


def test_integers_beyond_a_float_are_clamped_not_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=pa.array([2**64 - 1, 2**53 + 1, 1], pa.uint64()))
    assert read(tmp_path, ["x"], LINE).points.ravel().tolist() == [200, 200, 2]


def test_columns_come_in_the_order_of_the_job(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", y=[1.0], unused=[{"nested": "text"}], x=[0.0])
    assert read(tmp_path, ["x", "y"], UNIT_SQUARE).points.tolist() == [[0, 1024]]


@pytest.mark.parametrize("bad", [None, np.nan, np.inf, -np.inf])
def test_a_row_with_a_bad_value_is_no_record_but_counts_as_a_row(tmp_path: Path, bad: float | None) -> None:
    write(tmp_path / "good" / "a.parquet", x=[0.0, 0.25, 0.5, 1.0], y=[0.0] * 4)
    write(tmp_path / "bad" / "a.parquet", x=[0.0, bad, 0.5, 1.0], y=[0.0, 0.0, bad, 0.0])
    good, rest = (read(tmp_path / name, ["x", "y"], UNIT_SQUARE) for name in ("good", "bad"))
    assert rest.points.tolist() == [[0, 0], [1024, 0]]
    assert rest.ids.tolist() == good.ids[[0, 3]].tolist()


PUBLIC = Labels(['["b"]', '["a"]'])


@pytest.mark.parametrize("labels", [None, PUBLIC], ids=["private", "public"])
@pytest.mark.parametrize("keyed", [False, True], ids=["together", "by group"])
@pytest.mark.parametrize("grid", [Grid((0.0,), (100.0,), 1.0), Grid((0,), (2**60,), 1)], ids=["line", "wide"])
def test_each_record_has_the_identity_and_the_group_of_its_own_row(
    grid: Grid, keyed: bool, labels: Labels | None
) -> None:
    """Though other rows are left out before it. Rows of units are told apart by these identities, too."""
    rng, n = np.random.default_rng(0), 300
    values = [None if rng.random() < 0.2 else int(rng.integers(0, 100)) for _ in range(n)]
    names = [None if rng.random() < 0.2 else str(rng.choice(["a", "b", "other"])) for _ in range(n)]
    ids = rng.permutation(n).astype(np.uint64)
    keys = GroupKeys(("g",), (None,), labels) if keyed else None
    batch = pa.record_batch({"x": pa.array(values, pa.int64()), "g": names})
    block = to_block(Reader(("x",), grid, groups=keys), batch, ids)
    found = zip(block.ids.tolist(), block.points[:, 0].tolist(), strict=True)
    known = {"a", "b", "other"} if labels is None else {"a", "b"}
    kept = [i for i in range(n) if values[i] is not None and (not keyed or names[i] in known)]
    assert list(found) == [(int(ids[i]), values[i]) for i in kept]
    if keyed:
        assert block.groups is not None and block.labels is not None
        assert block.labels[block.groups].tolist() == [f'["{names[i]}"]'.encode() for i in kept]


def test_a_file_without_a_row_group_has_a_block_too(tmp_path: Path) -> None:
    """Without an element, a run of such files alone would end without a release."""
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema({"x": pa.float64(), "y": pa.float64()})).close()
    source = open_source(str(tmp_path), ["x", "y"])
    (descriptor,) = list_row_groups(source.files[0])
    assert descriptor.row_group is None
    (block,) = read_blocks(Reader.of(source, UNIT_SQUARE), descriptor)
    assert block.points.shape == (0, 2)


@pytest.mark.parametrize("rows", [0, 5])
def test_a_table_without_records_is_one_empty_block_per_row_group(tmp_path: Path, rows: int) -> None:
    nulls, zeros = pa.array([None] * rows, pa.float64()), pa.array([0] * rows, pa.int8())
    path = write(tmp_path / "a.parquet", x=nulls, y=zeros)
    source = open_source(str(path), ["x", "y"])
    (block,) = read_in_memory(source, UNIT_SQUARE)
    assert block.points.shape == (0, 2)
    assert block.ids.shape == (0,)
    assert block.points.dtype == np.int64 and block.ids.dtype == np.uint64


def test_a_row_group_is_read_in_blocks_of_bounded_size(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", 400_000, x=np.linspace(0, 100, 600_000))
    blocks = list(read_in_memory(open_source(str(tmp_path), ["x"]), LINE))
    assert max(len(block.ids) for block in blocks) <= 1 << 18
    assert sum(len(block.ids) for block in blocks) == 600_000


def test_identities_do_not_depend_on_row_groups_or_on_where_the_folder_lies(tmp_path: Path) -> None:
    one = read(write_points(tmp_path / "here", [3000, 70_000], 1), ["x", "y"], UNIT_SQUARE)
    many = read(write_points(tmp_path / "there", [3000, 70_000], 64), ["x", "y"], UNIT_SQUARE)
    assert np.array_equal(one.ids, many.ids)
    assert np.array_equal(one.points, many.points)
    assert len(np.unique(one.ids)) == len(one.ids) == 73_000 - 60 - 1400


def test_identities_are_distinct_in_all_files_whatever_their_names(tmp_path: Path) -> None:
    """By the hash of a name that identities were once made of, 70,000 rows of these two files were pairs."""
    for name in ("p4324877", "p4838424"):
        write(tmp_path / f"{name}.parquet", x=[0.5] * 100_000)
    ids = read(tmp_path, ["x"], LINE).ids
    assert len(np.unique(ids)) == len(ids) == 200_000


def test_row_groups_are_described_by_their_first_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 4, x=list(range(10)))
    file = File(str(path), "a.parquet")
    assert list_row_groups(file) == [Descriptor(file, 0, 0), Descriptor(file, 1, 4), Descriptor(file, 2, 8)]


def test_a_damaged_row_group_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=np.random.default_rng(0).random(1000))
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(tmp_path, ["x"], LINE)
    assert str(caught.value) == "input.path: a.parquet can no longer be read, or is damaged."


def test_the_reader_wants_one_axis_per_column(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1.0])
    with pytest.raises(InputError, match="has 1 columns and domain 2 axes"):
        Reader.of(open_source(str(tmp_path), ["x"]), UNIT_SQUARE)


def test_the_reader_refuses_to_break_the_privacy_unit(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1.0], user=[1])
    with pytest.raises(InputError, match="its rows must be bounded"):
        Reader.of(open_source(str(tmp_path), ["x"], unit="user"), LINE)


def test_the_transform_gives_every_row_group_once_and_the_graph_no_figure(tmp_path: Path) -> None:
    source = open_source(str(write_points(tmp_path, [300, 0, 500], 3)), ["x", "y"])
    expected = [d for file in source.files for d in list_row_groups(file)]
    assert len(expected) == 7
    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([])) as pipeline:
        descriptors = pipeline | ReadBlocks(source)
        assert_that(descriptors, equal_to(expected))
    assert sum(len(b.ids) for d in expected for b in read_blocks(Reader.of(source, UNIT_SQUARE), d)) == 784


def test_integers_are_read_exactly_on_a_wide_axis(tmp_path: Path) -> None:
    """Values that float64 would round, clamped without overflow at the ends of both types."""
    least, most = -(2**63), 2**63 - 1
    grid = Grid((2**60 + 1,), (2**60 + 2**62,), 1)
    values = [least, 2**60, 2**60 + 1, None, 2**60 + 2, 2**60 + 2**62 - 1, 2**60 + 2**62, most]
    write(tmp_path / "a.parquet", x=pa.array(values, pa.int64()))
    block = read(tmp_path, ["x"], grid)
    assert block.points.ravel().tolist() == [0, 0, 0, 1, 2**62 - 2, 2**62 - 1, 2**62 - 1]
    assert len(set(block.ids.tolist())) == 7
    write(tmp_path / "a.parquet", x=pa.array([0, 2**63 + 5, 2**64 - 1, None], pa.uint64()))
    high = Grid((2**63 + 1,), (2**64 - 2,), 2)
    assert read(tmp_path, ["x"], high).points.ravel().tolist() == [0, 2, (2**63 - 3) // 2]


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS[1:], *DECIMALS, pa.bool_()], ids=str)
def test_every_numeric_type_is_read_on_a_wide_axis(tmp_path: Path, kind: pa.DataType) -> None:
    write(tmp_path / "a.parquet", x=pa.array([1, None, 0], pa.int8()).cast(kind))
    assert read(tmp_path, ["x"], Grid((0,), (2**40,), 1)).points.ravel().tolist() == [1, 0]
    write(tmp_path / "a.parquet", x=pa.array([1, None, 0], pa.int8()).cast(kind))
    if pa.types.is_integer(kind):
        assert read(tmp_path, ["x"], Grid((-(2**62),), (-1,), 1)).points.ravel().tolist() == [2**62 - 1] * 2
    else:
        with pytest.raises(InputError, match=r"input\.columns: x does not contain integers"):
            read(tmp_path, ["x"], Grid((0,), (2**60,), 1))


def test_a_label_of_floats_may_stand_beside_a_wide_axis(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=pa.array([2**60 + 1, 2**60 + 3, 5]), label=[1.0, float("nan"), 0.0])
    grid = Grid((2**60, 0), (2**61, 1), 1)
    assert read(tmp_path, ["x", "label"], grid).points.tolist() == [[1, 1], [0, 0]]


def test_identities_of_rows_of_other_files_begin_where_those_of_a_file_end() -> None:
    last = [int(row_ids(File("", "", number), 2**40 - 1, 1)[0]) for number in (0, 1, 2**24 - 1)]
    first = [int(row_ids(File("", "", number), 0, 1)[0]) for number in (1, 2)]
    assert last == [first[0] - 1, first[1] - 1, 2**64 - 1]
    assert row_ids(File("", "", 7), 5, 3).tolist() == [7 * first[0] + 5 + i for i in range(3)]
