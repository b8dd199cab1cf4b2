"""A used column may have other types of numbers in other files: records are those of one type."""

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.times import Times
from pipelines.job.job import check_job
from transforms.bound_units import Bounding, bound_in_memory
from transforms.list_files import InputError
from transforms.open_source import open_source
from transforms.read_blocks import check_axes, list_row_groups, read_in_memory
from transforms.split_units import Splitting, gather, split_rows

GRID = Grid((0.0,), (10.0,), 1.0)
WIDE = Grid((0,), (2**60,), 1)
SALT = bytes(range(16))
KINDS = [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()]
KINDS += [pa.decimal128(30, 2)]


def folder(place: Path, kinds: list[pa.DataType], unit: bool = False) -> str:
    """Write a file of each kind with 0, 1 and a null."""
    place.mkdir()
    for number, kind in enumerate(kinds):
        table = {"x": pa.array([0, 1, None]).cast(kind)}
        if unit:
            table["who"] = pa.array([number, number, 7])
        pq.write_table(pa.table(table), place / f"{number:02}.parquet")
    return str(place)


@pytest.mark.parametrize("grid", [GRID, WIDE])
def test_records_do_not_depend_on_types(tmp_path: Path, grid: Grid) -> None:
    kinds = KINDS if grid is GRID else [kind for kind in KINDS if pa.types.is_integer(kind)]
    found = []
    for name, of in (("mixed", kinds), ("alike", [pa.int64()] * len(kinds))):
        source = open_source(folder(tmp_path / name, of), ["x"])
        assert bool(source.mixed) == (name == "mixed")
        found.append([block.points.tolist() for block in read_in_memory(source, grid)])
    assert found[0] == found[1]
    assert sum(map(len, found[0])) == 2 * len(kinds)


def test_units_have_the_same_records(tmp_path: Path) -> None:
    found = []
    for name, of in (("mixed", KINDS), ("alike", [pa.int64()] * len(KINDS))):
        source = open_source(folder(tmp_path / name, of, unit=True), ["x"], unit="who")
        blocks = bound_in_memory(source, Bounding.of(source, GRID, "max", SALT))
        found.append(
            sorted((i, p) for block in blocks for i, p in zip(block.ids, block.points[:, 0], strict=True))
        )
    assert found[0] == found[1]
    assert [point for _, point in found[0]] == [1] * len(KINDS)


def test_times_of_any_unit(tmp_path: Path) -> None:
    second = datetime.datetime(2026, 1, 1, 0, 0, 5)
    for unit in ("s", "ms", "us", "ns"):
        pq.write_table(pa.table({"t": pa.array([second], pa.timestamp(unit))}), tmp_path / f"{unit}.parquet")
    domain = {"lower": ["2026-01-01T00:00:00"], "upper": ["2026-01-02T00:00:00"], "step": "1 second"}
    job = {"task": "median", "input": {"path": str(tmp_path), "columns": ["t"]}, "domain": domain}
    checked = check_job({**job, "privacy": {"epsilon": 1.0, "delta": 0.0}, "output": str(tmp_path / "out")})
    assert isinstance(checked.grid.times, Times)
    source = open_source(str(tmp_path), ["t"], times=checked.grid.times)
    assert [block.points.tolist() for block in read_in_memory(source, checked.grid)] == [[[5]]] * 4


def test_integers_beside_floats_need_an_axis_that_float64_holds(tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "mixed", [pa.int64(), pa.float64()]), ["x"])
    check_axes(source, GRID)
    with pytest.raises(InputError, match="x does not contain integers"):
        check_axes(source, WIDE)


@pytest.mark.parametrize(
    "kinds, one",
    [
        ([pa.int8(), pa.bool_(), pa.uint32()], pa.int64()),
        ([pa.int64(), pa.uint64()], pa.float64()),
        ([pa.int64(), pa.float32()], pa.float64()),
        ([pa.int32(), pa.decimal128(30, 2)], pa.float64()),
        ([pa.int32()], pa.int32()),
    ],
)
def test_functions_see_one_type(tmp_path: Path, kinds: list[pa.DataType], one: pa.DataType) -> None:
    source = open_source(folder(tmp_path / "mixed", kinds), ["x"])
    splitting = Splitting(source.columns, None, 1, SALT, mixed=source.mixed)
    shards = [
        shard
        for file in source.files
        for descriptor in list_row_groups(file)
        for _, shard in split_rows(splitting, descriptor)
    ]
    [(_, stream)] = gather(splitting, 0, shards)
    table = pa.ipc.open_stream(stream).read_all()
    assert table.schema.field("x").type == one
    held = np.sort(table.column("x").drop_null().to_numpy())
    assert held.tolist() == [0] * len(kinds) + [1] * len(kinds)


def test_functions_see_one_type_of_each_column_also_of_numbers_that_it_rounds(tmp_path: Path) -> None:
    """A number that float64 does not hold is no error, which would tell of its row."""
    for name, x, y in (("a", pa.int64(), pa.int8()), ("b", pa.float32(), pa.int16())):
        rows = {"x": pa.array([2**53 + 1 if name == "a" else 1], x), "y": pa.array([5], y)}
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    source = open_source(str(tmp_path), ["x", "y"])
    splitting = Splitting(source.columns, None, 1, SALT, mixed=source.mixed)
    read = [split_rows(splitting, each) for file in source.files for each in list_row_groups(file)]
    [(_, stream)] = gather(splitting, 0, [shard for shards in read for _, shard in shards])
    table = pa.ipc.open_stream(stream).read_all()
    assert [field.type for field in table.schema] == [pa.float64(), pa.int64()]
    assert table.to_pydict() == {"x": [2.0**53, 1.0], "y": [5, 5]}
