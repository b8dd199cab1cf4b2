"""What a unit contributes: within its bounds, by its own rows alone, and every choice equally likely."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.labels import Labels
from tests.core.exact import fits
from transforms import reduce_units as reduce_units_module
from transforms.bound_units import Bounding, bound_in_memory, split_points
from transforms.contributions import ContributedReader, Contributing
from transforms.group_keys import GroupKeys
from transforms.open_source import open_source
from transforms.read_blocks import list_row_groups
from transforms.split_units import read_keyed

GRID, SALT = Grid((0.0,), (1000.0,), 1.0), b"sixteen secrets!"
PRIVATE = GroupKeys(("city",), (None,))
PUBLIC = GroupKeys(("city",), (None,), Labels(f'["c{i}"]' for i in range(7)))


def write(path, units, cities, values, row_group_size=100):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"u": units, "city": cities, "x": np.asarray(values, dtype=float)})
    pq.write_table(table, path, row_group_size=row_group_size)


def contributing(path, groups=2, rows=3, keys=PRIVATE, salt=SALT, checked=False):
    source = open_source(str(path), ["x"], "u", groups=keys)
    return source, Contributing.of(source, Bounding.of(source, GRID, "one", salt, checked), groups, rows)


def kept(path, **bounds):
    """Return the records as (identity, city, value), sorted."""
    source, how = contributing(path, **bounds)
    found = []
    for block in bound_in_memory(source, how):
        cities = [None] * len(block.ids) if how.keys is None else block.labels[block.groups].tolist()
        found += zip(block.ids.tolist(), cities, block.points[:, 0].tolist(), strict=True)
    return sorted(found)


def rows(n=3000, units=120, cities=10, seed=0, text=True):
    rng = np.random.default_rng(seed)
    names = [f"person {i}" if text else i for i in rng.integers(0, units, n).tolist()]
    return names, [f"c{i}" for i in rng.integers(0, cities, n)], rng.integers(0, 20, n)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize(("keys", "cities"), [(PRIVATE, 10), (PUBLIC, 7)])
def test_bounds_hold_and_are_used(tmp_path, keys, cities, text):
    """Every unit keeps as many groups and rows as it has, up to the bounds; rows of other keys are none."""
    units, city, values = rows(text=text)
    write(tmp_path / "rows.parquet", units, city, values)
    found = kept(tmp_path / "rows.parquet", keys=keys)
    by_unit: dict = {}
    for unit, where, _ in found:
        by_unit.setdefault(unit, Counter())[where] += 1
    there: dict = {}
    for unit, where in zip(units, city, strict=True):
        if int(where[1:]) < cities:
            there.setdefault(unit, Counter())[where] += 1
    assert len(by_unit) == len(there) == 120
    assert sorted(len(c) for c in by_unit.values()) == sorted(min(2, len(c)) for c in there.values())
    assert max(max(c.values()) for c in by_unit.values()) == 3
    everything = kept(tmp_path / "rows.parquet", keys=keys, groups=10, rows=100)
    assert len(everything) == sum(sum(c.values()) for c in there.values())
    assert not Counter(found) - Counter(everything)


def test_the_records_of_a_unit_follow_from_its_own_rows(tmp_path):
    """Not from other units, places, files or the division into row groups."""
    units, city, values = rows()
    order = np.random.default_rng(1).permutation(len(units))
    write(tmp_path / "one" / "rows.parquet", units, city, values)
    for part, (number, size) in zip(np.array_split(order, 3), ((0, 7), (1, 50), (2, 1000)), strict=True):
        chosen = [[column[i] for i in part] for column in (units, city, values)]
        write(tmp_path / "three" / f"{number}.parquet", *chosen, row_group_size=size)
    whole = kept(tmp_path / "one" / "rows.parquet")
    assert kept(tmp_path / "three") == whole
    fewer = [i for i in range(len(units)) if units[i] != "person 7"]
    write(tmp_path / "fewer.parquet", *([column[i] for i in fewer] for column in (units, city, values)))
    without = kept(tmp_path / "fewer.parquet")
    assert len({unit for unit, _, _ in whole} - {unit for unit, _, _ in without}) == 1
    assert not Counter(without) - Counter(whole) and len(whole) - len(without) <= 6
    assert kept(tmp_path / "one" / "rows.parquet", salt=b"another 16 bytes") != whole


@pytest.mark.parametrize(("keys", "text"), [(PRIVATE, True), (PUBLIC, False), (None, True)])
def test_a_large_shard_in_batches_gives_the_same_records(tmp_path, monkeypatch, keys, text):
    write(tmp_path / "rows.parquet", *rows(text=text))
    whole = kept(tmp_path / "rows.parquet", keys=keys)
    monkeypatch.setattr(reduce_units_module, "_MANY", 8)
    assert kept(tmp_path / "rows.parquet", keys=keys) == whole


@pytest.mark.parametrize(("keys", "text"), [(PRIVATE, True), (PUBLIC, False), (None, True)])
def test_rows_of_a_batch_that_are_handled_few_at_a_time_give_the_same_records(
    tmp_path, monkeypatch, keys, text
):
    units, city, values = rows(text=text)
    missing = np.where(np.arange(len(values)) % 5, values, np.nan)  # rows that are left out
    write(tmp_path / "rows.parquet", units, city, missing)
    whole = kept(tmp_path / "rows.parquet", keys=keys)
    monkeypatch.setattr("transforms.contributions.ROWS", 7)
    assert kept(tmp_path / "rows.parquet", keys=keys) == whole


def test_every_choice_is_equally_likely(tmp_path):
    """2 of 3 groups, and 1 of the rows 5, 5, 9 of each; 3,000 units. The salt is fixed: no flakes."""
    n = 3000
    units = np.repeat(np.arange(n), 9)
    write(tmp_path / "rows.parquet", units, np.tile(list("aaabbbccc"), n), np.tile([5, 5, 9], 3 * n), 9000)
    found = kept(tmp_path / "rows.parquet", groups=2, rows=1)
    assert len(found) == 2 * n
    pairs = Counter(
        tuple(where for _, where, _ in some) for _, some in itertools.groupby(found, lambda r: r[0])
    )
    assert len(pairs) == 3 and fits(np.array(list(pairs.values())), np.ones(3))
    values = Counter(value for _, _, value in found)
    assert fits(np.array([values[5], values[9]]), np.array([2.0, 1.0]))
    first = Counter(value for i, (_, _, value) in enumerate(found) if i % 2)
    assert fits(np.array([first[5], first[9]]), np.array([2.0, 1.0]))


def test_two_of_three_rows_are_a_uniform_subset(tmp_path):
    n = 3000
    write(tmp_path / "rows.parquet", np.repeat(np.arange(n), 3), ["a"] * 3 * n, np.tile([1, 2, 3], n), 9000)
    found = kept(tmp_path / "rows.parquet", groups=1, rows=2)
    pairs = Counter(tuple(v for *_, v in some) for _, some in itertools.groupby(found, lambda r: r[0]))
    assert set(pairs) == {(1, 2), (1, 3), (2, 3)} and fits(np.array(list(pairs.values())), np.ones(3))


def test_a_unit_is_whole_in_one_block(tmp_path, monkeypatch):
    monkeypatch.setattr("transforms.contributions.BLOCK_VALUES", 10)
    units, city, values = rows()
    write(tmp_path / "rows.parquet", units, city, values)
    source, how = contributing(tmp_path / "rows.parquet", groups=10, rows=100)
    seen: Counter = Counter()
    blocks = list(bound_in_memory(source, how))
    for block in blocks:
        seen.update(set(block.ids.tolist()))
    assert len(blocks) > 100 and set(seen.values()) == {1}
    assert sum(len(block.ids) for block in blocks) == 3000


def test_parts_arrive_in_any_order(tmp_path):
    units, city, values = rows()
    write(tmp_path / "rows.parquet", units, city, values)
    source, how = contributing(tmp_path / "rows.parquet")
    groups = [group for file in source.files for group in list_row_groups(file)]
    reader, seen = ContributedReader(1, how.keys), []
    for order in (groups, groups[::-1]):
        shards: dict = {}
        for group in order:
            for number, part in split_points(how, group):
                shards.setdefault(number, []).append(part)
        found = []
        for number, parts in sorted(shards.items()):
            for block in reader.blocks(how.bound(number, parts)):
                cities = block.labels[block.groups].tolist()
                found += sorted(zip(block.ids.tolist(), cities, block.points[:, 0].tolist(), strict=True))
        seen.append(found)
    assert seen[0] == seen[1] and len(seen[0]) > 500


def test_without_groups_a_unit_keeps_some_rows(tmp_path):
    units, city, values = rows()
    write(tmp_path / "rows.parquet", units, city, values)
    found = kept(tmp_path / "rows.parquet", keys=None, groups=1, rows=4)
    assert set(Counter(unit for unit, _, _ in found).values()) == {4}


@pytest.mark.parametrize("at_once", [2, 100])
def test_rows_of_nobody_or_of_no_group_are_left_out_and_units_with_odd_rows_are_counted(
    tmp_path, monkeypatch, at_once
):
    monkeypatch.setattr("transforms.contributions.ROWS", at_once)
    units = pa.array(["a", None, "b", "b", "c"])
    city = pa.array(["x", "x", None, "x", "x"])
    write(tmp_path / "rows.parquet", units, city, [1, 1, 1, np.nan, 2000])
    source, how = contributing(tmp_path / "rows.parquet", checked=True)
    blocks = list(bound_in_memory(source, how))
    assert sorted(value for block in blocks for value in block.points[:, 0].tolist()) == [1, 1000]
    assert sum(block.outside for block in blocks if block.outside is not None).tolist() == [1, 1]


def test_an_empty_input_has_every_shard(tmp_path):
    write(tmp_path / "rows.parquet", pa.array([], pa.string()), pa.array([], pa.string()), [])
    source, how = contributing(tmp_path / "rows.parquet")
    blocks = list(bound_in_memory(source, how))
    assert len(blocks) == how.parts and not any(len(block.ids) for block in blocks)


def test_long_keys_are_not_put_together(tmp_path):
    """Arrow refuses columns of more than 2^31 bytes. So it would be an error to have many of them."""
    path = tmp_path / "rows.parquet"
    for dictionaries in (True, False):
        units, cities = list(range(40)), [f"{i:01000}" for i in range(39)] + ["c1"]
        table = pa.table({"u": units, "city": cities, "x": [0.0] * 40})
        pq.write_table(table, path, use_dictionary=dictionaries)
        source, _ = contributing(path)
        (descriptor,) = list_row_groups(source.files[0])
        ((batch, _),) = read_keyed(descriptor, ["x"], "u", SALT, 100, groups=["city"])
        assert batch.column("city").to_pylist() == [None] * 39 + ["c1"]
        if not dictionaries:
            assert batch.nbytes < 1000
        assert [city for _, city, _ in kept(path)] == [b'["c1"]']


def test_two_units_of_one_identity_remain_two(tmp_path):
    """Keys of texts have two words, and units are in the shard of the first."""
    how = Contributing(Bounding(("x",), GRID, "u", "one", SALT), PRIVATE, 2, 3)
    keys = pa.array([first + second for first, second in PAIRS], pa.binary(16))
    batch = pa.record_batch({"x": [1.0, 2.0, 3.0, 4.0], "city": ["c1"] * 4})
    pieces: dict[int, list[bytes]] = {}
    for number, piece in how.split(batch, keys):
        pieces.setdefault(number, []).append(piece)
    blocks = [block for number, own in pieces.items() for block in how.reader.blocks(how.bound(number, own))]
    ids = [identity for block in blocks for identity in block.ids.tolist()]
    points = [point for block in blocks for point in block.points[:, 0].tolist()]
    assert sorted(points) == [1, 2, 3, 4]
    owners = dict(zip(points, ids, strict=True))
    assert owners[1] == owners[3] and len({owners[1], owners[2], owners[4]}) == 3
    assert owners[4] == int.from_bytes(b"another ", "little")  # nobody has the same


PAIRS = [
    (b"the same", b"person a"),
    (b"the same", b"person b"),
    (b"the same", b"person a"),
    (b"another ", b"person a"),
]
