"""Axes: what they say that they show, and where a value is on them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.answers.answer import domain_of
from pipelines.answers.axis import Axis


def of_times(lower: str, upper: str, step: str) -> Any:
    domain = {"columns": ["t"], "lower": [lower], "upper": [upper], "step": step}
    return domain_of({"domain": domain})["columns"][0]


def milliseconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    ("low", "high", "title", "place"),
    [
        (0.0, 8.0, "x", 3.0),
        (1e9, 1e9 + 100, "x less 1,000,000,000", 3.0),
        (1.5e9 + 0.5, 1.5e9 + 5.5, "x less 1,500,000,000.5", 3.0),
    ],
)
def test_an_axis_far_from_0_says_from_where_it_counts(
    low: float, high: float, title: str, place: float
) -> None:
    axis = Axis.of("x", low, high)
    assert axis.title == title and axis.place(low + 3) == place
    assert axis.encoded("x")["scale"]["domain"] == [axis.place(low), axis.place(high)]


@pytest.mark.parametrize(
    ("lower", "upper", "step", "title", "at"),
    [
        ("2020-01-01", "2021-01-01", "1 day", "t (date)", "2020-01-06"),
        ("2020-01-01T00:00:00", "2021-01-01T00:00:00", "1 hour", "t (date)", "2020-01-01T05:00:00"),
        ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", "1 hour", "t (date in UTC)", "2020-01-01T05:00:00"),
        ("2020-01-01T06:00:00Z", "2020-01-02T06:00:00Z", "1 hour", "t (time in UTC)", "2020-01-01T11:00:00"),
        (
            "2020-01-01T06:00:00",
            "2020-01-01T06:30:00",
            "1 minute",
            "t (time on 2020-01-01)",
            "2020-01-01T06:05:00",
        ),
    ],
)
def test_times_are_milliseconds_since_1970(lower: str, upper: str, step: str, title: str, at: str) -> None:
    """Their axis is drawn in UTC, whatever the zone of the computer."""
    axis = Axis.of(
        of_times(lower, upper, step), 0, 366 if step == "1 day" else 8784 if "T00" in lower else 24
    )
    assert axis.title == title
    assert axis.place(5) == milliseconds(at)
    assert axis.encoded("x")["scale"]["type"] == "utc"


def test_an_axis_of_few_seconds_has_durations() -> None:
    axis = Axis.of(of_times("2020-01-01T00:00:00", "2020-01-01T00:01:00", "2 seconds"), 5, 15)
    assert axis.title == "t (seconds after 2020-01-01T00:00:10)"
    assert axis.place(5) == 0 and axis.place(8) == 6.0


def test_instants_of_a_ledger_are_in_milliseconds_with_room() -> None:
    axis = Axis.of_instants("run", [86_400.0, 10 * 86_400.0])
    assert axis.title == "run (date in UTC)" and axis.place(86_400.0) == 86_400_000
    assert axis.low < 86_400.0 < 10 * 86_400.0 < axis.high


def test_figures_have_room_but_not_beyond_0() -> None:
    axis = Axis.around("x", [None, 16.0, 0.0, 8.0])
    assert (axis.low, axis.high) == (0, 17.0)
    axis = Axis.around("x", [16.0, 32.0])
    assert (axis.low, axis.high) == (15.0, 33.0)


def test_letters_of_large_numbers_are_those_of_english() -> None:
    ticks = Axis.of("x", 0, 4e9).encoded("x")["axis"]
    assert ticks["labelExpr"] == "replace(format(datum.value, '~s'), 'G', 'bn')"
    assert Axis.of("x", 0, 99_000).encoded("x")["axis"] == {}
