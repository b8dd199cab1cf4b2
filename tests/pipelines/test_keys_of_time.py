"""Keys that are times: a release must not fail where noise releases one that no file can hold."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.grouping import Grouping, key_columns
from pipelines.table import encode_table, open_table, release_inside, stacked, stored_columns
from tests.pipelines.jobs import LINE
from transforms.group_keys import GroupKeys
from transforms.key_labels import UNITS

STAMPS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
FIRST, LAST = (int(np.datetime64(day).astype(int)) for day in ("0001-01-01", "9999-12-31"))


def column_of(kind: pa.DataType) -> tuple[list[int], int, pa.Array]:
    """Return values of a type, at its ends and at those of years, how many are a day, and their column."""
    bits = kind.bit_width
    day = 1 if bits == 32 else A_DAY["ms" if kind == pa.date64() else kind.unit]
    ends = (FIRST * day, (LAST + 1) * day, 0, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
    near = [end + step for end in ends for step in (-day, -1, 0, 1, day)]
    drawn = np.random.default_rng(0).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 200).tolist()
    values = [value for value in (*near, *drawn) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]
    data = np.array(values, dtype=f"i{bits // 8}")
    return values, day, pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), *STAMPS], ids=str)
@pytest.mark.parametrize("cut", UNITS)
def test_a_table_holds_every_key_as_the_time_that_it_is(kind: pa.DataType, cut: str) -> None:
    """Times outside the years 1 to 9999 are no keys."""
    values, day, column = column_of(kind)
    groups, labels = GroupKeys(("c",), (cut,)).read(pa.record_batch({"c": column}))
    for value, group in zip(values, groups.tolist(), strict=True):
        assert (group >= 0) == (FIRST <= value // day <= LAST)
        if group >= 0:
            hour = np.datetime64(value * 24 // day, "h")
            time = hour.astype(f"datetime64[{UNITS[cut]}]")
            if cut == "week":
                time -= (time - np.datetime64("2024-01-01")) % np.timedelta64(7, "D")  # a Monday
            assert json.loads(labels[group]) == [str(time)]
    stored = encode_table(b"{}", key_columns(labels.tolist(), Grouping(("c",), None, (UNITS[cut],))))
    again = pq.read_table(pa.BufferReader(stored)).column("c").to_pylist()
    assert len(again) == len(labels) > 0
    for label, shown in zip(labels.tolist(), again, strict=True):
        assert shown.isoformat().startswith(json.loads(label)[0])


def test_dates_in_a_dictionary_are_keys() -> None:
    dates = pa.array([1, 2, 1, None], pa.int32()).cast(pa.date32())
    batch = pa.record_batch({"c": dates.dictionary_encode()})
    groups, labels = GroupKeys(("c",), (None,)).read(batch)
    assert [None if group < 0 else labels[group] for group in groups] == [
        b'["1970-01-02"]',
        b'["1970-01-03"]',
        b'["1970-01-02"]',
        None,
    ]


KEYS = [
    pa.array(["a", "b"]),
    pa.array([1, 2**64 - 1], pa.uint64()),
    pa.array([-1, 1], pa.int64()),
    pa.array([0, 1], pa.int32()).cast(pa.date32()),
    pa.array([True, False]),
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: str(keys.type))
def test_parts_of_a_table_have_keys_of_one_type(keys: pa.Array) -> None:
    """Also one that released no key, and one whose integers are all small."""
    _, labels = GroupKeys(("c",), (None,)).read(pa.record_batch({"c": keys}))
    grouping = Grouping(("c",), None, ("D" if pa.types.is_date(keys.type) else None,))

    def part(own) -> pa.Table:
        columns = key_columns(own.tolist(), grouping) | {"count": np.arange(len(own))}
        return open_table(encode_table(b"{}", columns)).read()

    parts = [part(own) for own in (labels[:0], labels[:1], labels[1:], labels)]
    for some in (parts, parts[::-1], parts[:1], parts[1:3]):
        assert len(stacked(some)) == sum(map(len, some))
    assert stacked(parts).column("c").to_pylist() == 2 * parts[-1].column("c").to_pylist()


def test_a_table_holds_a_long_release() -> None:
    release = b" " * 120_000_000
    stored = encode_table(release, {"count": np.arange(3)})
    assert release_inside(stored, "here") == release and len(stored_columns(stored)["count"]) == 3


def test_a_run_with_times_of_no_year_gives_a_release(bench) -> None:
    """As many rows as are surely released, at the least timestamp that there is."""
    times = np.full(4000, 1_700_000_000_000)
    times[2000:] = -(2**63) + 1
    column = pa.Array.from_buffers(pa.timestamp("ms"), 4000, [None, pa.py_buffer(times)])
    pq.write_table(pa.table({"x": np.linspace(0, 1, 4000), "c": column}), bench.rows)
    asked = {"task": "statistics", **LINE, "params": {"measures": ["count"]}}
    groups = {"columns": ["c"], "keys": "private", "truncate": {"c": "hour"}}
    done = bench.run({**asked, "group_by": groups, "privacy.delta": 1e-6})
    assert done.exit_code == 0, done.output
    assert pq.read_table(bench.folder / "out" / "result.parquet").num_rows == 1
