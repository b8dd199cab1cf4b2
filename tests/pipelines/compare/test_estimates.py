"""What is known of the errors of released figures, and of those of rows that each run draws anew."""

import math
from typing import Any

import numpy as np
import pytest

from pipelines.compare.estimate import KEPT, Estimate, drawn_anew, most_of_unit
from pipelines.compare.estimates import estimates

ONE_OF_UNIT = {"unit": "who", "keep": "one"}


@pytest.mark.parametrize(
    ("privacy", "contributions", "most"),
    [
        (ONE_OF_UNIT, None, 1),
        ({"unit": "who"}, {"groups": 2, "rows": 3}, 3),
        ({"unit": "who"}, {"groups": 2}, None),  # a function gets all rows of a unit
        ({"unit": "who", "keep": "last"}, None, None),
        ({"unit": None}, {"groups": 2, "rows": 3}, None),
        ({}, None, None),
    ],
)
def test_most_records_of_a_unit(
    privacy: dict[str, Any], contributions: dict[str, Any] | None, most: int | None
) -> None:
    assert most_of_unit({"privacy": privacy, "contributions": contributions}) == most


@pytest.mark.parametrize(("most", "value", "error"), [(1, 16.0, 5.0), (4, 4.0, 5.0), (4, -7.0, 3.0)])
def test_a_count_of_rows_drawn_anew_varies_by_as_many_as_a_unit_has(
    most: int, value: float, error: float
) -> None:
    """A unit may have `most` rows in a count, or none: its variance is then nearly `most` times the count."""
    count = drawn_anew(Estimate("count", value, 3.0, counts=True), most)
    assert count.error is not None and math.isclose(count.error, error)
    assert drawn_anew(Estimate("sum", value, 3.0, 1.0, (0.0, 9.0)), most) == Estimate("sum", value)


@pytest.mark.parametrize("grouped", [False, True])
def test_errors_of_ranks_are_none_of_values(grouped: bool) -> None:
    names = ["count", "sum", "mean", "variance", "quantile_0.5", "minimum", "maximum"]
    values = [
        {"measure": name, "column": 0, "value": 5.0, "error": 2.0, "low": None, "high": None}
        for name in names
    ]
    release = {
        "task": "statistics",
        "domain": {"columns": ["x"]},
        "group_by": None,
        "result": {"values": values},
        "privacy": {},
    }
    rows = None
    if grouped:
        release |= {"group_by": {"columns": ["c"], "truncate": {}}}
        columns = {f"{name}{end}": each for name in names for end, each in (("", 5.0), ("_error", 2.0))}
        rows = {"c": np.array(["a"]), **{name: np.array([each]) for name, each in columns.items()}}
    known = {each.name.removesuffix(" of x"): each.error for each in estimates(release, rows)}
    assert known == {**dict.fromkeys(names[:4], 2.0), **dict.fromkeys(names[4:], None)}


def test_ranges_of_a_distribution_are_counts() -> None:
    """So their errors are known of rows that each run draws anew; those of the number of all rows are not."""
    asked = {"low": 1.0, "high": 2.0, "count": 16, "standard_error": 3.0}
    release = {
        "task": "cdf",
        "privacy": ONE_OF_UNIT,
        "accuracy": {"promises": {"kolmogorov_records": 9}},
        "result": {"total": 40, "ranges": [asked]},
    }
    everything, counted = estimates(release, None)
    assert (counted.error, everything.error, everything.bound) == (5.0, None, None)
    everything, counted = estimates(release, None, KEPT)
    assert (counted.error, everything.bound) == (3.0, 9)
