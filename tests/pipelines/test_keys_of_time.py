"""Keys that are times: a release must not fail where noise releases one that no file can hold."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.grouping import Grouping, key_columns
from pipelines.table import encode_table
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
            assert json.loads(labels[group]) == [str(hour.astype(f"datetime64[{UNITS[cut]}]"))]
    stored = encode_table(b"{}", key_columns(labels.tolist(), Grouping(("c",), None, (UNITS[cut],))))
    again = pq.read_table(pa.BufferReader(stored)).column("c").to_pylist()
    assert len(again) == len(labels) > 0
    for label, shown in zip(labels.tolist(), again, strict=True):
        assert shown.isoformat().startswith(json.loads(label)[0])


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
