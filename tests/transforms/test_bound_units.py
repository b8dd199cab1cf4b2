"""All rows of a unit become one record, whatever their number, order and place, and no other unit's does."""

import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.aggregate import Tally
from core.domain import Ball, Grid
from core.noise import Noise
from core.rounds import Block, run_in_memory
from tests.core.seeded import SeededNoise
from tests.engines.golden import Recorded, Trace
from tests.transforms.tables import UNIT_SQUARE, write
from tests.transforms.test_unit_records import exact_mean
from transforms import reduce_units as reduce_units_module
from transforms.bound_units import (
    BoundedReader,
    Bounding,
    BoundUnits,
    bound_in_memory,
    split_points,
)
from transforms.embedded_runner import EmbeddedRunner
from transforms.keep import Keep
from transforms.open_source import InputError, Source, open_source
from transforms.read_blocks import ReadBlocks, list_row_groups
from transforms.run_rounds import RunRounds
from transforms.unit_keys import unit_ids

SALT = b"a salt of 16 byt"
KEEPS: tuple[Keep, ...] = ("one", "mean", "min", "max", "sum")
"""The ways of two columns that need no order; `count` is of one column."""

ORDERED: tuple[Keep, ...] = (*KEEPS, "last")

LINE = Grid((0.0,), (1000.0,), 1.0)


def bounding(source: Source, grid: Grid, keep: Keep, salt: bytes = SALT) -> Bounding:
    return Bounding.of(source, grid, keep, salt)


def records(source: Source, grid: Grid, keep: Keep, salt: bytes = SALT) -> Block:
    blocks = list(bound_in_memory(source, bounding(source, grid, keep, salt)))
    assert all(block.points.shape == (len(block.ids), grid.dimension) for block in blocks)
    assert all(block.points.dtype == np.int64 and block.ids.dtype == np.uint64 for block in blocks)
    return Block(np.concatenate([b.points for b in blocks]), np.concatenate([b.ids for b in blocks]))


def counted(block: Block) -> Counter:
    return Counter((int(i), tuple(point)) for i, point in zip(block.ids, block.points.tolist(), strict=True))


def table(folder: Path, units: object, row_group_size: int | None = None, **columns: object) -> Source:
    write(folder / "t.parquet", row_group_size, u=units, **columns)
    return opened(folder, *columns)


def opened(folder: Path, *columns: str) -> Source:
    """Open a table whose column `t`, if it has one, orders the rows."""
    order = "t" if "t" in columns else None
    return open_source(str(folder), [column for column in columns if column != "t"], "u", order)


def times(n: int, seed: int = 1) -> pa.Array:
    """Return the times of rows: many are equal, and some are null."""
    rng = np.random.default_rng(seed)
    return pa.array(rng.integers(-3, 3, n), pa.int32(), mask=rng.random(n) < 0.2)


def people(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return units with 1 to hundreds of rows, and their points, some of them equal."""
    rng = np.random.default_rng(seed)
    units = np.minimum(rng.zipf(1.5, n), 400)
    return units, np.round(rng.uniform(size=n), 2), rng.choice([0.25, 0.5, 0.75], n)


@pytest.mark.parametrize("keep", ORDERED)
def test_records_do_not_depend_on_order_files_or_row_groups(tmp_path: Path, keep: Keep) -> None:
    (units, x, y), t = people(3000), times(3000)
    whole = records(table(tmp_path / "whole", units, x=x, y=y, t=t), UNIT_SQUARE, keep)
    for seed, size in enumerate((1, 7, 1000)):
        order = np.random.default_rng(seed).permutation(3000)
        for number, part in enumerate(np.array_split(order, 3)):
            some = {"u": units[part], "x": x[part], "y": y[part], "t": t.take(pa.array(part))}
            write(tmp_path / f"cut {seed}" / f"{number}.parquet", max(size, 20), **some)
        cut = records(opened(tmp_path / f"cut {seed}", "x", "y", "t"), UNIT_SQUARE, keep)
        assert np.array_equal(cut.points, whole.points) and np.array_equal(cut.ids, whole.ids)
    assert len(whole.ids) == len(set(units)) == len(set(whole.ids))


@pytest.mark.parametrize("keep", ORDERED)
def test_a_large_shard_in_batches_gives_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: Keep
) -> None:
    (units, x, y), t = people(3000), times(3000)
    source = table(tmp_path, units, x=x, y=y, t=t)
    whole = records(source, UNIT_SQUARE, keep)
    monkeypatch.setattr(reduce_units_module, "_MANY", 8)  # and a unit may have more rows than that
    assert counted(records(source, UNIT_SQUARE, keep)) == counted(whole)


@pytest.mark.parametrize("keep", ORDERED)
def test_rows_of_a_batch_that_are_handled_few_at_a_time_give_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: Keep
) -> None:
    (units, x, y), t = people(3000), times(3000)
    x[::7] = np.nan  # rows that are left out
    source = table(tmp_path, units, x=x, y=y, t=t)
    whole = records(source, UNIT_SQUARE, keep)
    monkeypatch.setattr("transforms.bound_units.ROWS", 70)
    assert counted(records(source, UNIT_SQUARE, keep)) == counted(whole)


@pytest.mark.parametrize("keep", ORDERED)
@pytest.mark.parametrize("salt", [SALT, bytes(16)])
def test_a_unit_more_or_less_is_one_record_more_or_less(tmp_path: Path, keep: Keep, salt: bytes) -> None:
    """Rows are taken out, so that all others move up: those of other units stay what they were."""
    (units, x, y), t = people(2000), times(2000)
    x[units == 3] = np.nan  # of whom no row is complete
    before = counted(records(table(tmp_path / "all", units, x=x, y=y, t=t), UNIT_SQUARE, keep, salt))
    for unit in (*range(1, 12), 400):
        stay = units != unit
        rest = {"x": x[stay], "y": y[stay], "t": t.filter(pa.array(stay))}
        source = table(tmp_path / f"without {unit}", units[stay], **rest)
        after = counted(records(source, UNIT_SQUARE, keep, salt))
        assert not after - before
        assert (before - after).total() == (unit in units and unit != 3)
        later = pc.if_else(pa.array(stay), t, 9)
        other = table(tmp_path / f"other {unit}", units, x=np.where(stay, x, 0.9), y=y, t=later)
        replaced = counted(records(other, UNIT_SQUARE, keep, salt))
        assert (before - replaced).total() <= 1 and (replaced - before).total() <= 1


def test_the_last_row_is_the_complete_one_with_the_greatest_time(tmp_path: Path) -> None:
    """Of several such rows it is the one that is kept where there are no others."""
    (units, x, y), t = people(2000), times(2000)
    x[::7] = np.nan
    last = records(table(tmp_path / "all", units, x=x, y=y, t=t), UNIT_SQUARE, "last")
    placed = np.array([-9 if time is None else time for time in t.to_pylist()])
    stay = np.zeros(2000, dtype=bool)
    for unit in set(units):
        own = (units == unit) & np.isfinite(x)
        stay |= own & (placed == placed[own].max(initial=-99))
    alone = records(table(tmp_path / "last", units[stay], x=x[stay], y=y[stay]), UNIT_SQUARE, "one")
    assert counted(last) == counted(alone)
    none = pa.nulls(2000, pa.int64())
    untimed = records(table(tmp_path / "untimed", units, x=x, y=y, t=none), UNIT_SQUARE, "last")
    one = records(table(tmp_path / "one", units, x=x, y=y), UNIT_SQUARE, "one")
    assert np.array_equal(untimed.points, one.points)


def test_a_used_column_can_order_the_rows(tmp_path: Path) -> None:
    units, x = np.array([1, 1, 2]), np.array([5, 9, 3])
    write(tmp_path / "t.parquet", u=units, x=x)
    source = open_source(str(tmp_path), ["x"], "u", "x")
    assert sorted(records(source, LINE, "last").points[:, 0].tolist()) == [3, 9]


def test_a_record_is_one_of_the_rows_or_their_mean(tmp_path: Path) -> None:
    units, x, y = people(3000)
    source = table(tmp_path, units, x=x, y=y)
    points = UNIT_SQUARE.quantize(np.stack([x, y], axis=1))
    one, *others = (records(source, UNIT_SQUARE, keep) for keep in KEEPS)
    assert all(other.ids.tolist() == one.ids.tolist() for other in others)
    for i, unit in enumerate(one.ids.astype(int)):
        own = points[units == unit]
        assert (own == one.points[i]).all(axis=1).any()
        sums = np.minimum(own.sum(axis=0), UNIT_SQUARE.extents)
        wanted = exact_mean(own), own.min(axis=0).tolist(), own.max(axis=0).tolist(), sums.tolist()
        assert tuple(other.points[i].tolist() for other in others) == wanted


@pytest.mark.parametrize("step", [1.0, 0.25, 10.0])
def test_rows_are_counted_where_the_column_has_a_value(tmp_path: Path, step: float) -> None:
    """The count does not depend on the values, and is clamped to the domain like any value."""
    grid = Grid((1.0,), (21.0,), step)
    units, x, _ = people(3000)
    x[units == 2] = np.nan
    x[::7] = np.nan
    source = table(tmp_path, units, x=1e6 * x)
    counts = records(source, grid, "count")
    for unit, point in zip(counts.ids.astype(int), counts.points, strict=True):
        rows = np.isfinite(x[units == unit]).sum()
        assert point.tolist() == grid.quantize(np.array([[float(rows)]]))[0].tolist()
    assert 2 not in counts.ids


@pytest.mark.parametrize("block", [1 << 16, 4])
def test_of_counted_rows_the_numbers_that_are_moved_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Once, in however many blocks the units are; and not the values that are outside of the bounds, which no
    record depends on.
    """
    monkeypatch.setattr("transforms.bound_units.BLOCK_VALUES", block)
    monkeypatch.setattr("transforms.bound_units.ROWS", 16 * block)
    grid = Grid((2.0,), (4.0,), 1.0)
    units = np.repeat(np.arange(600), 1 + np.arange(600) % 6)  # units of 1, ..., 6 rows, a hundred of each
    x = np.full(len(units), 1e6)
    x[units == 599] = np.nan  # one of six
    bounding = Bounding.of(table(tmp_path, units, x=x), grid, "count", SALT, checked=True)
    blocks = list(bound_in_memory(table(tmp_path, units, x=x), bounding))
    assert sum(block.outside for block in blocks if block.outside is not None).tolist() == [1, 100 + 99 + 100]
    assert sum(len(block.ids) for block in blocks) == 599


def test_each_row_is_as_likely_as_any_other(tmp_path: Path) -> None:
    """Of 12,000 units each keeps 0 with probability 9/10: 6 sigma stray with probability 2e-9.

    Were each value as likely instead, as many would keep 0 as 1, 133 sigma away.
    """
    n = 12_000
    x = np.tile([0.0] * 9 + [1000.0], n)
    source = table(tmp_path, np.repeat(np.arange(n), 10), x=x)
    kept = records(source, LINE, "one").points[:, 0]
    assert abs((kept == 0).sum() - 0.9 * n) < 6 * math.sqrt(0.09 * n)
    assert set(kept.tolist()) == {0, 1000}
    other = records(source, LINE, "one", b"another, 16 byte").points[:, 0]
    moved = (kept != other).sum()
    assert abs(moved - 0.18 * n) < 6 * math.sqrt(0.18 * 0.82 * n)  # independent under another salt


@pytest.mark.parametrize("keep", KEEPS)
def test_a_wide_grid_keeps_every_whole_number(tmp_path: Path, keep: Keep) -> None:
    first = 2**61 + 1
    source = table(tmp_path, [1, 1, 2], x=[first, first, 3])
    kept = records(source, Grid((0,), (2**62 - 1,), 1), keep)
    assert sorted(kept.points.tolist()) == [[3], [2**62 - 1 if keep == "sum" else first]]


def test_a_mean_stays_in_the_ball(tmp_path: Path) -> None:
    """Means of points on the sphere of many axes may leave it by rounding: half a step for each axis."""
    d, n = 40, 300
    grid = Grid((-1.0,) * d, (1.0,) * d, 2.0**-6, Ball((0.0,) * d, 0.5))
    rng = np.random.default_rng(0)
    around = rng.normal(size=(n, d)) * 0.03 + rng.normal(size=d)
    columns = {f"x{axis}": around[:, axis] for axis in range(d)}
    source = table(tmp_path, np.arange(n) // 2, **columns)
    kept = records(source, grid, "mean")
    distance = np.linalg.norm(grid.restore(kept.points), axis=1)
    assert len(kept.ids) == n // 2
    assert distance.max() <= 0.5 + math.sqrt(d) / 2 * grid.step
    assert distance.min() > 0.4
    moved = np.linalg.norm(kept.points - np.array(grid.bounding_center), axis=1)
    assert moved.max() <= grid.bounding_radius


def test_incomplete_rows_are_of_no_one(tmp_path: Path) -> None:
    x = [1.0, None, math.nan, 5.0, math.inf, 7.0, -3.0]
    source = table(tmp_path, pa.array(["a", "a", "b", None, "c", "c", "d"]), x=x)
    for keep in KEEPS:
        assert sorted(records(source, LINE, keep).points[:, 0].tolist()) == [0, 1, 7]


@pytest.mark.parametrize("keep", KEEPS)
def test_a_person_with_very_many_rows_is_one_record(tmp_path: Path, keep: Keep) -> None:
    x = np.r_[np.arange(400_000) % 1000, 7.0]
    kept = records(table(tmp_path, np.r_[np.zeros(400_000, int), 1], 50_000, x=x), LINE, keep)
    found = dict(zip(kept.ids.tolist(), kept.points[:, 0].tolist(), strict=True))
    assert found.keys() == {0, 1}
    assert found[1] == 7
    wanted = {"mean": 500, "min": 0, "max": 999, "sum": 1000}  # the mean is 499.5, halves up
    assert found[0] == wanted.get(keep, found[0])


Units = Callable[[np.ndarray], pa.Array]

KINDS: dict[str, Units] = {
    "signed integers": lambda ids: pa.array(ids - 75),
    "unsigned integers": lambda ids: pa.array(2**64 - 1 - ids.astype(np.uint64)),
    "booleans": lambda ids: pa.array(ids > 75),
    "text": lambda ids: pa.array([f"person {i} " * (1 + i % 4) for i in ids]),
    "categories": lambda ids: pa.array([f"N{i}" for i in ids]).dictionary_encode(),
    "bytes": lambda ids: pa.array([bytes([i % 256] * (i % 20)) + b"%d" % i for i in ids]),
    "fixed bytes": lambda ids: pa.array([b"%05d" % i for i in ids], pa.binary(5)),
    "identifiers": lambda ids: pa.array([b"%016d" % i for i in ids], pa.uuid()),
    "days": lambda ids: pa.array(ids.astype("datetime64[D]")),
    "times": lambda ids: pa.array(ids, pa.timestamp("us", "Europe/Berlin")),
    "clock": lambda ids: pa.array(ids.astype(np.int32), pa.time32("s")),
    "decimals": lambda ids: pa.array(ids).cast(pa.decimal128(21, 2)),
    "small decimals": lambda ids: pa.array(ids).cast(pa.decimal128(21, 0)).cast(pa.decimal64(18, 0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_every_kind_are_told_apart_by_their_values(tmp_path: Path, kind: str) -> None:
    ids = np.random.default_rng(0).integers(0, 150, 2000)
    units = KINDS[kind](ids)
    source = table(tmp_path, units, 300, x=ids.astype(float))
    kept = records(source, LINE, "mean")
    if kind == "booleans":
        assert len(kept.ids) == 2
    else:
        assert sorted(kept.points[:, 0].tolist()) == sorted(set(ids.tolist()))
    assert len(set(kept.ids.tolist())) == len(kept.ids)


def test_a_value_is_one_unit_in_whatever_type_a_file_has_it(tmp_path: Path) -> None:
    families = [
        [pa.array([7, -1], kind) for kind in (pa.int8(), pa.int32(), pa.int64())],
        [pa.array([7, 200], kind) for kind in (pa.uint8(), pa.uint64())],
        [
            pa.array(["ab", ""]),
            pa.array(["ab", ""], pa.large_string()),
            pa.array(["ab", ""]).dictionary_encode(),
        ],
        [pa.array([b"ab", b"cd"], kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))],
    ]
    for number, family in enumerate(families):
        for file, units in enumerate(family):
            write(tmp_path / str(number) / f"{file}.parquet", u=units, x=[1.0 + file, 9.0])
        kept = records(open_source(str(tmp_path / str(number)), ["x"], "u"), LINE, "mean")
        assert len(kept.ids) == 2
        assert sorted(kept.points[:, 0].tolist()) == [
            math.floor(np.mean([1.0 + i for i in range(len(family))]) + 0.5),
            9,
        ]


def test_equal_hashes_neither_merge_nor_split_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(keys: pa.Array) -> np.ndarray:
        return unit_ids(keys) % np.uint64(3)

    monkeypatch.setattr("transforms.unit_rows.unit_ids", same)
    ids = np.random.default_rng(0).integers(0, 50, 2000)
    source = table(tmp_path, pa.array([f"person {i}" for i in ids]), x=ids.astype(float))
    for keep in KEEPS:
        kept = records(source, LINE, keep)
        if keep != "sum":
            assert sorted(kept.points[:, 0].tolist()) == list(range(50))
        assert len(set(kept.ids.tolist())) == 3


REFUSED = [
    (
        [pa.array([1]), pa.array(["1"])],
        r"u is int64 in 0\.parquet but string in 1\.parquet; a unit must be of one",
    ),
    ([pa.array([1]), pa.array([1], pa.uint64())], "u is int64 in 0.parquet but uint64"),
    ([pa.array(["a"]), pa.array([b"a"])], "but binary in 1"),
    ([pa.array([1], pa.timestamp(unit)) for unit in ("ms", "us")], "one kind in all files"),
    ([pa.array([1.0])], r"u is double in 0\.parquet; give a column of integers, text"),
    ([pa.array([None], pa.null())], "u is null"),
    ([pa.array([[1]])], "u is list"),
]


@pytest.mark.parametrize(("files", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_units_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, files: Iterable[pa.Array], says: str
) -> None:
    for number, units in enumerate(files):
        write(tmp_path / f"{number}.parquet", u=units, x=[1.0])
    with pytest.raises(InputError, match=rf"^input\.unit: .*{says}.*\.$"):
        open_source(str(tmp_path), ["x"], "u")


def test_one_axis_for_each_column(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 1 columns and domain 2 axes"):
        bounding(table(tmp_path, [1], x=[1.0]), UNIT_SQUARE, "one")


class Corners:
    """Sum all coordinates and count the records, without noise."""

    name, floor = "corners", None

    def summarize(self, block: Block, state: int) -> Tally:
        return Tally(
            np.r_[len(block.ids), block.points.sum(axis=0), (block.ids % np.uint64(97)).sum().astype(int)]
        )

    def release(self, aggregate: Tally, state: int, noise: Noise) -> int:
        return state + 1


class Again(Corners):
    name = "again"


def rounds() -> list[Recorded]:
    return [Recorded(Corners()), Recorded(Again())]


WAYS = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
    "repeated": {"direct_num_workers": 1, "direct_runner_bundle_repeat": 2},
    "two_processes": {"direct_num_workers": 2, "direct_running_mode": "multi_processing"},
}


CASES = [
    *((way, 3000, keep) for way in WAYS for keep in ("one", "sum")),
    *(("two_threads", 3000, keep) for keep in ("mean", "min", "max", "last")),
]


@pytest.mark.parametrize(("way", "rows", "keep"), [*CASES, *(("one_thread", 0, keep) for keep in KEEPS)])
def test_beam_gives_what_memory_gives(tmp_path: Path, way: str, rows: int, keep: Keep) -> None:
    units, x, y = people(rows)
    names = pa.array([f"person {unit}" for unit in units], pa.string())
    source = table(tmp_path / "rows", names, 400, x=x, y=y, t=times(rows))
    asked = bounding(source, UNIT_SQUARE, keep)
    noise = SeededNoise(0, factor=0.0)
    expected = run_in_memory(rounds(), bound_in_memory(source, asked), Trace((), 0), noise)

    def append(state: object) -> None:
        with (tmp_path / "states").open("ab") as file:
            pickle.dump(state, file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **WAYS[way])) as pipeline:
        elements = pipeline | ReadBlocks(source) | BoundUnits(asked)
        state = elements | RunRounds(rounds(), Trace((), 0), noise, BoundedReader(UNIT_SQUARE))
        _ = state | "Save" >> beam.Map(append)
    with (tmp_path / "states").open("rb") as file:
        got = pickle.load(file)
    assert got.aggregates == expected.aggregates
    assert len(got.aggregates) == 2 and got.aggregates[0] == got.aggregates[1]
    assert got.aggregates[0].totals[0] == len(set(units))


@pytest.mark.parametrize("units", [["a"], ["a", "b", "c"], [None]])
def test_how_many_parts_there_are_says_nothing_of_who_is_in_them(tmp_path: Path, units: list) -> None:
    source = table(tmp_path, pa.array(units, pa.string()), x=np.zeros(len(units)))
    cut = bounding(source, LINE, "one")
    [descriptor] = list_row_groups(source.files[0])
    assert [number for number, _ in split_points(cut, descriptor)] == list(range(cut.shards))


def test_there_is_an_element_for_each_shard_though_no_row_is_in_it(tmp_path: Path) -> None:
    source = table(tmp_path, pa.array([], pa.int64()), x=pa.array([], pa.float64()))
    blocks = list(bound_in_memory(source, bounding(source, LINE, "one")))
    assert len(blocks) == bounding(source, LINE, "one").shards
    assert all(block.points.shape == (0, 1) for block in blocks)


def test_many_records_come_in_blocks_of_bounded_size() -> None:
    n = 300_000
    element = (np.arange(2 * n, dtype="<u4").tobytes(), np.arange(n, dtype="<u8").tobytes(), b"")
    blocks = list(BoundedReader(Grid((0.0, 0.0), (1.0, 1.0), 2.0**-20)).blocks(element))
    assert max(len(block.ids) for block in blocks) <= 1 << 17
    assert np.concatenate([block.points for block in blocks])[-1].tolist() == [n - 1, 2 * n - 1]
