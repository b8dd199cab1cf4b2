"""Key columns of a table of groups, and what a unit may contribute."""

import json

import numpy as np
import pytest

from core.errors import InvalidValue
from core.grouping import TEXT, Contributions, Grouping, key_columns
from core.labels import Labels


@pytest.mark.parametrize("keys", [(0, 2**64 - 1), (2**64 - 1, 0), (5, -(2**63)), (2**63 - 1,), (2**63,)])
def test_integers_stay_integers(keys):
    grouping = Grouping(("k",), None, (None,))
    column = key_columns([f"[{key}]" for key in keys], grouping)["k"]
    assert column.dtype == (np.uint64 if max(keys) >= 2**63 else np.int64)
    assert column.tolist() == list(keys)


MANY = 40_000
"""More labels than are parsed at one time."""


@pytest.mark.parametrize("of", [list, Labels])
def test_every_key_of_many_has_its_place(of):
    labels = of(json.dumps([i - 7, f"é{i}", i % 3 == 0]) for i in range(MANY))
    columns = key_columns(labels, Grouping(("a", "b", "c"), None, (None, None, None)))
    assert [column.dtype for column in columns.values()] == [np.int64, TEXT, np.bool_]
    assert columns["a"].tolist() == list(range(-7, MANY - 7))
    assert columns["b"].tolist() == [f"é{i}" for i in range(MANY)]
    assert columns["c"].tolist() == [i % 3 == 0 for i in range(MANY)]


@pytest.mark.parametrize(("last", "dtype"), [(2**64 - 1, np.uint64), (-1, np.int64), ("text", object)])
def test_keys_of_other_kinds_may_come_last(last, dtype):
    keys = [*range(MANY), last]
    column = key_columns([json.dumps([key]) for key in keys], Grouping(("k",), None, (None,)))["k"]
    assert column.dtype == dtype and column.tolist() == keys


@pytest.mark.parametrize(
    ("time", "key", "kept"),
    [
        ("h", "2013-01-31T06", "2013-01-31T06:00:00"),
        ("D", "2013-01-31", "2013-01-31"),
        ("M", "2013-01", "2013-01-01"),
    ],
)
def test_times_are_kept_in_seconds_or_days(time, key, kept):
    grouping = Grouping(("t",), None, (time,))
    column = key_columns([json.dumps([key])], grouping)["t"]
    assert [str(each) for each in column] == [kept]
    assert key_columns([], grouping)["t"].dtype == column.dtype


def test_without_public_keys_groups_are_private_and_without_any_key_they_are_not():
    assert Grouping(("k",), None, (None,)).private
    assert not Grouping(("k",), Labels([]), (None,)).private


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"groups": 0}, r"has groups 0 and rows 1"),
        ({"groups": 3, "rows": 0}, r"has groups 3 and rows 0"),
        ({"groups": 1 << 16, "rows": 1 << 15}, r"has groups 65536 and rows 32768"),
        ({"clamp": "both"}, r"has clamp 'both'"),
    ],
)
def test_contributions_out_of_range_are_refused(wrong, said):
    with pytest.raises(InvalidValue, match=f"^contributions {said}"):
        Contributions(**wrong)
    assert Contributions(groups=(1 << 31) - 1).groups == 2**31 - 1
