"""Rows are ordered by integers, timestamps and dates of any size; nulls come first."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

from transforms.row_order import is_ordering, order_keys, order_words
from transforms.unit_records import last_rows
from transforms.unit_rows import UnitRows

COLUMNS = {
    "int8": pa.array([-128, -1, 0, 127], pa.int8()),
    "int64": pa.array([-(2**63), -1, 0, 2**63 - 1], pa.int64()),
    "uint64": pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()),
    "timestamp": pa.array(
        [datetime(1600, 1, 1), datetime(1970, 1, 1), datetime(2262, 5, 1)], pa.timestamp("us")
    ),
    "date32": pa.array([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)], pa.date32()),
    "date64": pa.array([date(1969, 12, 31), date(1970, 1, 1)], pa.date64()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_have_the_order_of_the_values(name: str) -> None:
    column = COLUMNS[name]
    assert is_ordering(column.type)
    keys = order_keys(column)
    assert keys.type == pa.uint64()
    assert keys.to_pylist() == sorted(set(keys.to_pylist())) and len(keys) == len(column)
    nothing = pa.array([None, *column.to_pylist()], column.type)
    assert order_keys(nothing).to_pylist() == [None, *keys.to_pylist()]


def test_other_types_order_nothing() -> None:
    others = (pa.float64(), pa.string(), pa.bool_(), pa.decimal128(5), pa.time32("s"), pa.null())
    assert not any(is_ordering(kind) for kind in others)


def test_the_last_rows_are_those_with_the_greatest_value_of_their_unit() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = [None if rng.random() < 0.4 else int(rng.integers(0, 4)) for _ in range(30)]
        of_unit = np.r_[np.arange(6), rng.integers(0, 6, 24)]
        places = UnitRows([], of_unit.astype(np.uint64), of_unit, 6)
        found = last_rows(places, list(order_words(pa.array(values, pa.uint64())).T))
        placed = [-1 if value is None else value for value in values]
        greatest = {
            unit: max(p for p, u in zip(placed, of_unit, strict=True) if u == unit) for unit in range(6)
        }
        wanted = [i for i, unit in enumerate(of_unit) if placed[i] == greatest[unit]]
        assert sorted(found.tolist()) == wanted
