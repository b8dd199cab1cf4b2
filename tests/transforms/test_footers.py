"""A footer is parsed once for all row groups of a file, and one footer at most stays in memory."""

import gc
import weakref
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.transforms.tables import write
from transforms.list_files import File, InputError
from transforms.open_source import open_source
from transforms.read_batches import read_batches

Footers = list[weakref.ref[pq.FileMetaData]]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Footers:
    """Return weak references to all footers that are parsed from now on."""
    footers: Footers = []

    def noted(opened: pa.NativeFile) -> pq.FileMetaData:
        footer = pq.ParquetFile(opened).metadata
        footers.append(weakref.ref(footer))
        return footer

    monkeypatch.setattr(pq, "read_metadata", noted)
    return footers


def opened(path: Path, unit: str | None = None) -> File:
    return open_source(str(path), ["x"], unit).files[0]


def rows_of(file: File, row_group: int, unit: str | None = None, every: bool = False) -> list[float]:
    read = read_batches(file, row_group, ["x"], 10, unit, every=every)
    return [value for batch in read for value in batch["x"].to_pylist()]


def in_memory(footers: Footers) -> int:
    return sum(footer() is not None for footer in footers)


@pytest.mark.parametrize(
    ("unit", "every", "most"), [(None, False, 1), ("n", False, 1), ("u", False, 2), (None, True, 2)]
)
def test_a_footer_is_parsed_once_for_all_row_groups(
    tmp_path: Path, parsed: Footers, unit: str | None, every: bool, most: int
) -> None:
    """2,000 row groups took 42 s when it was parsed for each."""
    columns = {"x": [float(i) for i in range(20)], "n": list(range(20))}
    table = pa.table({**columns, "u": pa.array([f"{i % 3}" for i in range(20)]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    file = opened(tmp_path / "a.parquet", unit)
    gc.disable()
    try:
        for row_group in range(10):
            assert rows_of(file, row_group, unit, every) == [2.0 * row_group, 2.0 * row_group + 1]
            assert in_memory(parsed) == (row_group < 9)
    finally:
        gc.enable()
    assert len(parsed) <= most


def test_the_footer_of_one_file_is_in_memory_at_most(tmp_path: Path, parsed: Footers) -> None:
    files = [opened(write(tmp_path / f"{i}.parquet", 1, x=[i, i + 0.5, i + 0.75])) for i in range(3)]
    for row_group in (1, 0):
        for number, file in enumerate(files):
            assert rows_of(file, row_group) == [number + row_group / 2]
            assert in_memory(parsed) == 1
    assert rows_of(files[0], 2) == [0.75]
    assert in_memory(parsed) == 0


def test_rows_are_those_of_the_file_that_is_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 1, x=[1.0, 2.0, 3.0])
    before = opened(path)
    assert rows_of(before, 0) == [1.0]
    write(path, 1, x=[4.0, 5.0, 6.0], y=["a longer", "footer", ""])
    with pytest.raises(InputError, match=r"^input\.path: a\.parquet was written again during the run"):
        rows_of(before, 1)
    after = opened(path)
    assert [value for i in range(3) for value in rows_of(after, i)] == [4.0, 5.0, 6.0]


def test_types_that_arrow_adds_are_there_where_they_are_asked_for(tmp_path: Path) -> None:
    """The same footer serves both ways of reading in turn, such as a screening beside a round."""
    names = pa.array(["a", "b", "a", "b"], pa.large_string())
    pq.write_table(
        pa.table({"x": [1.0, 2.0, 3.0, 4.0], "n": names}), tmp_path / "a.parquet", row_group_size=1
    )
    file = opened(tmp_path / "a.parquet")
    for row_group in (0, 1, 2):
        for every in (False, True, False):
            (batch,) = read_batches(file, row_group, ["x"], 10, every=every, others=["n"])
            kind = batch["n"].type
            assert pa.types.is_large_string(kind) != every
