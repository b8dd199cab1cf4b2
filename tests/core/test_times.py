"""Instants become points of a grid exactly, by the rule of numbers, and points become instants again."""

from fractions import Fraction

import numpy as np
import pytest

from core.domain import Grid
from core.errors import InvalidValue
from core.instants import TICKS
from core.times import Times

DOMAINS = [
    ("2013-01-01", "2013-12-31", "1 day"),
    ("1900-02-26", "1900-03-05", "7 days"),  # no leap year
    ("2000-02-20", "2100-03-01", "1 day"),
    ("0001-01-01", "9999-12-30", "1 day"),
    ("1969-12-30", "1970-01-13", "2 weeks"),
    ("2013-03-31T00:00:00Z", "2013-03-31T04:00:00+01:00", "15 minutes"),
    ("2013-10-27T00:00:00", "2013-10-28T00:00:00", "1 hour"),
    ("0001-01-01T00:00:00", "9999-01-01T00:00:00", "1 second"),
    ("1969-12-31T23:59:59.5", "1970-01-01T00:00:00.5", "1 millisecond"),
    ("1677-09-22T00:00:00.000000001", "2262-03-31T23:59:59.000000001", "7 seconds"),
    ("1969-12-31T23:59:59.999999990", "1970-01-01T00:00:00.000000011", "7 nanoseconds"),
    ("1700-01-01T00:00:00", "2200-01-01T00:00:00", "182621 days"),
    ("2013-01-01T00:00:00.000001", "2013-01-01T00:00:03.000001", "1500 milliseconds"),
]


def made(domain: tuple[str, str, str]) -> Times:
    low, high, step = domain
    return Times.of([low], [high], step)


def expected(times: Times, value: int, tick: str) -> int:
    """Round an instant by fractions: halves to even points."""
    low, high = times.lower[0], times.upper[0]
    assert low is not None and high is not None
    at = Fraction(value * TICKS[tick], TICKS[times.tick])
    if at < low:
        return -1
    return times.extent(0) + 1 if at > high else round((at - low) / times.step)


@pytest.mark.parametrize("tick", TICKS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_instant_is_rounded_as_fractions_are(domain: tuple[str, str, str], tick: str) -> None:
    times, rng = made(domain), np.random.default_rng(1)
    least, most = (-(2**31), 2**31 - 1) if tick == "D" else (-(2**63), 2**63 - 1)
    near = [0, -1, 1, least, most, least + 1, most - 1]
    steps = [0, 1, 2, times.extent(0) - 1, times.extent(0), int(rng.integers(times.extent(0) + 1))]
    for low in (times.lower[0], times.upper[0]):
        assert low is not None
        for half in (*(2 * step for step in steps), *(2 * step + 1 for step in steps)):
            at = (2 * low + half * times.step) * TICKS[times.tick] // (2 * TICKS[tick])
            near += [at - 1, at, at + 1]
    inside = rng.integers(0, 2**63 - 1, 200) / 2**63
    start, end = (
        int(each or 0) * TICKS[times.tick] // TICKS[tick] for each in (times.lower[0], times.upper[0])
    )
    near += [start + int(part * (end - start)) for part in inside]
    near += rng.integers(least, most, 200).tolist()
    values = [value for value in near if least <= value <= most]
    points = times.points(np.array(values, dtype=np.int64), tick, 0)
    assert points.tolist() == [expected(times, value, tick) for value in values]


@pytest.mark.parametrize("step", (1, 2, 3, 4))
def test_all_instants_about_a_small_grid(step: int) -> None:
    """Also where a tick of the values is 1,000 of the grid, and where it is the other way round."""
    for tick, low in (("us", "1970-01-01T00:00:00.000003"), ("ns", "1969-12-31T23:59:59.999999998")):
        unit = {"us": "microseconds", "ns": "nanoseconds"}[tick]
        start = int(np.datetime64(low, tick).astype(np.int64))
        high = str(np.datetime64(start + 5 * step, tick))
        times = Times.of([low], [high], f"{step} {unit}")
        assert times.tick == tick
        for theirs in ("ms", "us", "ns"):
            values = np.arange(-9000, 9001, 1 if tick != theirs == "ns" else 7)
            points = times.points(values, theirs, 0)
            assert points.tolist() == [expected(times, value, theirs) for value in values.tolist()]


@pytest.mark.parametrize("domain", DOMAINS)
def test_points_are_rounded_as_numbers_are(domain: tuple[str, str, str]) -> None:
    """The grid of the same ticks as whole numbers gives the same points; it moves the rest to its bounds."""
    times = made(domain)
    low, high = times.lower[0], times.upper[0]
    assert low is not None and high is not None
    numbers = Grid((low,), (high,), times.step)
    line = Grid((0,), (times.extent(0),), 1, times=times)
    assert line.extents == numbers.extents
    values = np.random.default_rng(2).integers(low - 3 * times.step, high + 3 * times.step, 5000)
    points = line.quantize_axis(times.points(values, times.tick, 0), 0)
    whole = numbers.quantize_axis(values, 0) if numbers.wide else numbers.quantize(values[:, None])[:, 0]
    assert (points == whole).all()


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_point_is_written_and_read_as_itself(domain: tuple[str, str, str]) -> None:
    times = made(domain)
    points = [0, 1, times.extent(0), times.extent(0) + 1, times.extent(0) // 2]
    for point in points:
        text = times.position(point, 0)
        assert times.read_position(text, 0) == float(point)
        assert text.endswith("Z") == times.zoned and ("T" in text) == (times.tick != "D")
        between = times.position(point, 0, between=True)
        assert "T" in between and times.read_position(between, 0, between=True) == float(point)
    for middle in (0.5, 1.25, 2 / 3):
        if TICKS[times.finer] * 1000 <= times.step * TICKS[times.tick]:
            read = times.read_position(times.position(middle, 0, between=True), 0, between=True)
            assert abs(read - middle) <= 0.0005
    instants = times.instants(np.array([0.0, np.nan, 1.0]), 0, between=True)
    assert np.isnat(instants).tolist() == [False, True, False]
    assert times.place(instants, 0).tolist()[::2] == [0.0, 1.0]
    assert np.isnan(times.place(instants, 0)[1])


def test_days_are_those_of_the_calendar() -> None:
    leap = Times.of(["2000-02-28"], ["2000-03-02"], "1 day")
    assert [leap.position(i, 0) for i in range(4)] == ["2000-02-28", "2000-02-29", "2000-03-01", "2000-03-02"]
    for year in ("1900", "2100"):
        common = Times.of([f"{year}-02-28"], [f"{year}-03-02"], "1 day")
        assert [common.position(i, 0) for i in range(3)] == [
            f"{year}-02-28",
            f"{year}-03-01",
            f"{year}-03-02",
        ]
    day = Times.of(["2013-03-31T00:00:00Z"], ["2013-04-01T00:00:00Z"], "1 hour")
    assert day.extent(0) == 24  # UTC has no summer time


def test_offsets_are_written_as_utc() -> None:
    times = Times.of(["2013-03-31T01:30:00+01:00"], ["2013-03-31T00:30:00-05:30"], "30 minutes")
    assert (times.position(0, 0), times.position(times.extent(0), 0)) == (
        "2013-03-31T00:30:00Z",
        "2013-03-31T06:00:00Z",
    )
    assert times.read_position("2013-03-30T20:00:00-06:00", 0) == 3


SPANS = [
    ("2000-01-01", "2000-01-15", "1 day"),
    ("2000-01-01", "2000-01-15", "2 weeks"),
    ("2000-01-01T00:00:00Z", "2000-01-01T07:00:00Z", "7 hours"),
    ("2000-01-01T00:00:00Z", "2000-01-01T00:00:03Z", "3 microseconds"),
]


@pytest.mark.parametrize("domain", SPANS)
def test_a_length_of_any_size_is_read_as_it_was_written(domain: tuple[str, str, str]) -> None:
    """What a release has must be read again, whatever noise made of it."""
    times = made(domain)
    rng = np.random.default_rng(1)
    for steps in [*10.0 ** rng.uniform(-300, 300, 3000), *10.0 ** rng.uniform(-6, 20, 3000), 0.0, 2.0**62]:
        read = times.read_length(times.length(float(steps)))
        assert read is not None and read == pytest.approx(float(steps), rel=1e-15, abs=0)


def test_lengths_are_in_the_unit_of_the_step() -> None:
    times = made(("2013-03-31T00:00:00Z", "2013-04-01T00:00:00Z", "15 minutes"))
    assert [times.length(x) for x in (1, 4, 0.5, 0, 1 / 15)] == [
        "15 minutes", "60 minutes", "7.5 minutes", "0 minutes", "1 minute"
    ]  # fmt: skip
    assert [times.read_length(x) for x in ("1 hour", "15 minutes", "7.5 minutes", "1 day")] == [
        4,
        1,
        0.5,
        96,
    ]
    for steps in np.random.default_rng(0).uniform(0, 1e6, 50).tolist():
        assert times.read_length(times.length(steps)) == pytest.approx(steps, rel=1e-15)


WRONG = [
    (("2013-01-01", "2013-12-31", "1 month"), "not every month has the same length"),
    (("2013-01-01", "2013-12-31", "1 year"), "not every year has the same length"),
    (("2013-01-01", "2013-12-31", "3 days"), "let upper be 2013-12-30 or 2014-01-02"),
    (("2013-12-31", "2013-01-01", "1 day"), "lower must be before upper"),
    (("2013-01-01", "2013-01-01", "1 day"), "lower must be before upper"),
    (("2013-01-01", "2013-12-31", "0 days"), "a whole number"),
    (("2013-01-01", "2013-12-31", "-1 days"), "a whole number"),
    (("2013-01-01", "2013-12-31", "1.5 days"), "a whole number"),
    (("2013-01-01", "2013-12-31", 1), "a whole number and one of week, day"),
    (("2013-01-01", "2013-12-31", "1 hour"), "between dates it must be whole days"),
    (("2013-01-01", "2013-12-31", "1 fortnight"), "a whole number and one of week, day"),
    (("2013-01-01", "2013-12-31", "400 days"), "at most upper - lower"),
    (("2013-02-29", "2013-12-31", "1 day"), "write a number, a date such as"),
    (("2013-1-1", "2013-12-31", "1 day"), "write a number, a date such as"),
    (("0000-01-01", "2013-12-31", "1 day"), "of the years 0001 to 9999"),
    (("2013-01-01", "9999-12-31", "1 day"), "in the years 0001 to 9999"),
    (("0001-01-01T00:00:00+14:00", "2013-12-31T10:00:00Z", "1 hour"), "in the years 0001 to 9999"),
    (("1600-01-01T00:00:00", "2013-12-31T00:00:00", "1 nanosecond"), "in 1678 to 2261"),
    (("2013-01-01", "2013-12-31T00:00", "1 day"), "all bounds must be of one kind"),
    (("2013-01-01T00:00", "2013-12-31T00:00Z", "1 day"), "all bounds must be of one kind"),
    (("2013-01-01T24:00", "2013-12-31T00:00", "1 day"), "write a number, a date such as"),
    (("2013-01-01T00:00:60", "2013-12-31T00:00", "1 day"), "write a number, a date such as"),
    (("2013-01-01", 5, "1 day"), "write two numbers or two dates"),
    (("2013-01-01T00:00", "2013-12-31T00:00", "3 days"), "2014-01-02T00:00:00, or take another"),
    (("2013-01-01T00:00Z", "2013-12-31T00:00Z", "3 days"), "2014-01-02T00:00:00 in UTC, or take"),
    ((0, 10.5, "1 day"), "has 0 and upper 10.5: beside axes of dates"),
    ((0.5, 10.5, "1 day"), "beside axes of dates or timestamps, bounds that are numbers must be whole"),
]


@pytest.mark.parametrize("domain, message", WRONG)
def test_a_domain_that_is_none_is_refused_in_one_sentence(domain: tuple[str, str, str], message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        made(domain)
    assert message in str(caught.value) and str(caught.value).endswith(".")
