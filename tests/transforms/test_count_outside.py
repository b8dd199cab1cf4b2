"""What is left out or moved is counted by row, or once for each unit, wherever the rows are."""

import pickle
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.domain import Grid
from core.labels import Labels
from tests.transforms.tables import UNIT_SQUARE, write
from transforms.bound_units import BoundedReader, Bounding, BoundUnits, bound_in_memory, split_points
from transforms.count_outside import outside
from transforms.embedded_runner import EmbeddedRunner
from transforms.group_keys import GroupKeys
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups, read_blocks
from transforms.spill import fetched

SALT = b"a salt of 16 byt"
N = 3000


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return units and two columns, some of whose values are missing or out of bounds."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(0.5, 0.4, (2, N))
    columns[rng.random((2, N)) < 0.03] = np.nan
    columns[0, rng.random(N) < 0.01] = np.inf
    return np.minimum(rng.zipf(1.4, N), 300), *columns


def found(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what a row is, by column, in the plainest way, shape (4, n)."""
    missing = np.array([[not np.isfinite(v) for v in column] for column in (x, y)])
    moved = np.array([[v < 0 or v > 1 for v in column] for column in (x, y)])
    return np.concatenate([missing, moved & ~missing.any(axis=0)])


def by_unit(units: np.ndarray, kinds: np.ndarray) -> list[int]:
    return [len(set(units[kind].tolist())) for kind in kinds]


def table(folder: Path, u, x, y, size: int = 500) -> Source:
    write(folder / "t.parquet", size, u=u, x=x, y=y)
    return open_source(str(folder), ["x", "y"], "u")


def checked(source: Source, *, checks: bool = True) -> Bounding:
    return Bounding.of(source, UNIT_SQUARE, "mean", SALT, checks)


def total(blocks) -> list[int]:
    return sum(block.outside for block in blocks if block.outside is not None).tolist()


@pytest.mark.parametrize("size", [7, 3000])
def test_rows_are_counted_in_every_block(tmp_path: Path, size: int) -> None:
    _, x, y = rows()
    write(tmp_path / "t.parquet", max(size, 100), x=x, y=y)
    source = open_source(str(tmp_path), ["x", "y"])
    parts = list_row_groups(source.files[0])
    reader = Reader.of(source, UNIT_SQUARE, checked=True)
    blocks = [block for part in parts for block in read_blocks(reader, part)]
    assert total(blocks) == found(x, y).sum(axis=1).tolist()
    plain = [block for part in parts for block in read_blocks(Reader.of(source, UNIT_SQUARE), part)]
    assert all(block.outside is None for block in plain)
    assert sum(len(block.ids) for block in blocks) == sum(len(block.ids) for block in plain)


def test_bounds_belong_to_the_domain_and_integers_are_compared_exactly() -> None:
    batch = pa.record_batch({"x": pa.array([0.0, 1.0, np.nextafter(1.0, 2), -1e-300, None, -np.inf])})
    left, moved = outside(batch, ["x"], Grid((0.0,), (1.0,), 0.25))
    assert left.tolist() == [False] * 4 + [True] * 2
    assert moved.tolist() == [False, False, True, True, False, False]
    wide = Grid((0,), (2**62 - 2,), 1)
    for kind in (pa.int64(), pa.uint64()):
        batch = pa.record_batch({"x": pa.array([2**62 - 2, 2**62 - 1, None, 0], kind)})
        assert outside(batch, ["x"], wide).tolist() == [
            [False, False, True, False],
            [False, True, False, False],
        ]


def test_a_unit_is_counted_once_for_each_kind(tmp_path: Path) -> None:
    units, x, y = rows()
    whole = total(bound_in_memory(source := table(tmp_path / "a", units, x, y), checked(source)))
    assert whole == by_unit(units, found(x, y))
    order = np.random.default_rng(1).permutation(N)
    other = table(tmp_path / "b", units[order], x[order], y[order], 77)
    assert total(bound_in_memory(other, checked(other))) == whole
    plain = list(bound_in_memory(source, checked(source, checks=False)))
    assert all(block.outside is None for block in plain)
    records = [block for block in bound_in_memory(source, checked(source)) if len(block.ids)]
    assert np.array_equal(
        np.concatenate([block.points for block in records]),
        np.concatenate([block.points for block in plain if len(block.ids)]),
    )


def test_a_unit_changes_each_count_by_at_most_one(tmp_path: Path) -> None:
    """Added, removed or replaced, with however many rows, complete or not."""
    units, x, y = rows()
    before = np.array(total(bound_in_memory(source := table(tmp_path / "all", units, x, y), checked(source))))
    for unit in (1, 2, 3, 300):
        stay = units != unit
        source = table(tmp_path / f"without {unit}", units[stay], x[stay], y[stay])
        change = before - total(bound_in_memory(source, checked(source)))
        assert set(change.tolist()) <= {0, 1}
        for value in (np.nan, 0.5, 7.0):
            source = table(tmp_path / f"{unit} {value}", units, np.where(stay, x, value), y)
            change = before - total(bound_in_memory(source, checked(source)))
            assert np.abs(change).max() <= 1


def test_units_are_counted_for_more_kinds_than_a_word_has_bits(tmp_path: Path) -> None:
    """33 columns: unit i is left out in column i, and unit 100 + i is moved in it."""
    names = [f"c{i}" for i in range(33)]
    values = np.full((66, 33), 0.5)
    values[:33][np.eye(33, dtype=bool)] = np.nan
    values[33:][np.eye(33, dtype=bool)] = 7.0
    units = np.append(np.arange(33), 100 + np.arange(33))
    write(tmp_path / "t.parquet", u=units, **dict(zip(names, values.T, strict=True)))
    source = open_source(str(tmp_path), names, "u")
    bounding = Bounding.of(source, Grid((0.0,) * 33, (1.0,) * 33, 2.0**-10), "mean", SALT, True)
    assert total(bound_in_memory(source, bounding)) == [1] * 66


def test_rows_of_nobody_are_not_counted(tmp_path: Path) -> None:
    units = pa.array([1, None, None, 2])
    source = table(tmp_path, units, np.array([np.nan, np.nan, 7.0, 7.0]), np.zeros(4))
    assert total(bound_in_memory(source, checked(source))) == [1, 0, 1, 0]


def test_the_number_of_parts_says_nothing_of_rows(tmp_path: Path) -> None:
    for number, x in enumerate(([0.5, 0.5], [np.nan, 7.0])):
        source = table(tmp_path / str(number), [1, 2], np.array(x), np.zeros(2))
        cut = checked(source)
        [descriptor] = list_row_groups(source.files[0])
        assert [part for part, _ in split_points(cut, descriptor)] == list(range(cut.parts))
        assert len(list(bound_in_memory(source, cut))) == cut.parts


WAYS = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}


@pytest.mark.parametrize("way", ["one_thread", pytest.param("two_processes", marks=pytest.mark.slow)])
def test_beam_counts_what_memory_counts(tmp_path: Path, way: str) -> None:
    units, x, y = rows()
    names = pa.array([f"person {unit}" for unit in units])
    source = table(tmp_path / "rows", names, x, y)

    def append(spilled) -> None:
        element = fetched(spilled)
        with (tmp_path / "counts").open("ab") as file:
            pickle.dump(total([*BoundedReader(UNIT_SQUARE).blocks(element)]) if element[2] else [0] * 4, file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **WAYS[way])) as pipeline:
        _ = pipeline | ReadBlocks(source) | BoundUnits(checked(source)) | "Save" >> beam.Map(append)
    counts = []
    with (tmp_path / "counts").open("rb") as file:
        while file.peek(1):
            counts.append(pickle.load(file))
    assert len(counts) == checked(source).parts
    assert np.sum(counts, axis=0).tolist() == by_unit(units, found(x, y))


def test_a_row_without_a_public_group_counts_for_no_group(tmp_path: Path) -> None:
    """Neither where its key is null, nor where no public key is like it."""
    keys = ["a", "b", "a", "other", None, "b", "other"]
    write(tmp_path / "t.parquet", x=[2.0, 0.5, np.nan, 3.0, -1.0, np.inf, np.nan], c=keys)
    source = open_source(str(tmp_path), ["x"])
    groups = GroupKeys(("c",), (None,), Labels(['["a"]', '["b"]']))
    reader = replace(Reader.of(source, Grid((0.0,), (1.0,), 0.25), checked=True), groups=groups, apart=True)
    (descriptor,) = list_row_groups(source.files[0])
    (block,) = read_blocks(reader, descriptor)
    assert block.outside.tolist() == [[1, 1], [1, 0]]
