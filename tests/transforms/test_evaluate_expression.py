"""Arrow gives what a plain evaluation of one row after the other gives, and never an error."""

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.evaluate_expression import evaluate
from transforms.expression_values import TIME, column_values, with_zone
from transforms.parse_expression import (
    Call,
    Column,
    Comparison,
    ExpressionError,
    Literal,
    Node,
    parse_expression,
)

Row = dict[str, Any]


def run(text: str, **columns: pa.Array) -> list[Any]:
    rows = len(next(iter(columns.values())))
    return run_node(parse_expression(text), columns, rows)


def run_node(node: Node, columns: dict[str, pa.Array], rows: int) -> list[Any]:
    def column(name: str) -> pa.Array:
        return with_zone(column_values(name, columns[name]), columns[name].type)

    values = evaluate(node, column, rows)
    assert isinstance(values, pa.Array)
    assert len(values) == rows
    return values.to_pylist()


def whole(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def real(apply: Callable[[], float]) -> float | None:
    """Return a float as IEEE 754 has it, with None for NaN."""
    try:
        value = apply()
    except OverflowError:
        return math.inf
    except ValueError:
        return None
    return None if math.isnan(value) else value


def divide(a: float, b: float) -> float | None:
    with np.errstate(all="ignore"):
        return real(lambda: float(np.float64(a) / np.float64(b)))


def fdivide(sign: str, a: float, b: float) -> float | None:
    with np.errstate(all="ignore"):
        return real(
            lambda: float(np.float64(a) // np.float64(b) if sign == "//" else np.float64(a) % np.float64(b))
        )


def arithmetic(sign: str, a: Any, b: Any) -> Any:
    both = isinstance(a, int) and isinstance(b, int)
    if sign == "/":
        return divide(float(a), float(b))
    if sign in ("//", "%"):
        if not both:
            return fdivide(sign, float(a), float(b))
        a, b = whole(a), whole(b)
        if a is None or b is None or b == 0:
            return None
        return whole(a // b if sign == "//" else a % b)
    apply = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[sign]
    if both:
        a, b = whole(a), whole(b)
        return None if a is None or b is None else whole(apply())
    a, b = float(a), float(b)
    return real(apply)


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compared(sign: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if float in (type(a), type(b)):
        a, b = float(a), float(b)
    return SIGNS[sign](a, b)


def conjunction(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def rounded(function: str, value: Any) -> int | None:
    if isinstance(value, int):
        return value
    if math.isinf(value):
        return None
    return whole({"round": round, "floor": math.floor, "ceil": math.ceil}[function](value))


def clean(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def sort(node: Node) -> str | None:
    """Return the type of a number: int, natural (uint64) or float; None for anything else."""
    if isinstance(node, Column):
        return {"i": "int", "j": "int", "u": "natural", "f": "float", "g": "float"}.get(node.name)
    if isinstance(node, Literal):
        if isinstance(node.value, bool | str):
            return None
        return "float" if isinstance(node.value, float) else "int" if node.value < 2**63 else "natural"
    if isinstance(node, Comparison):
        return None
    sorts = list(map(sort, node.arguments))
    match node.function:
        case "+" | "-" | "*" | "//" | "%" | "negative":
            return "float" if "float" in sorts else "int"
        case "/" | "sqrt" | "log" | "exp" | "seconds":
            return "float"
        case "abs":
            return sorts[0]
        case "round" | "floor" | "ceil":
            return "int" if sorts[0] == "float" else sorts[0]
        case "min" | "max" | "coalesce" | "if":
            sorts = sorts[node.function == "if" :]
            return "float" if "float" in sorts else sorts[0] if len(set(sorts)) == 1 else "int"
    return "int" if node.function in (*PARTS, "length", "days") else None


PARTS = ("year", "month", "day", "hour", "minute", "weekday")


def of_sort(value: Any, kind: str | None) -> Any:
    if value is None or kind in (None, "natural"):
        return value
    return float(value) if kind == "float" else whole(value)


def plain(node: Node, row: Row) -> Any:
    """Evaluate an expression on one row in Python."""
    if isinstance(node, Column):
        return clean(row[node.name])
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Comparison):
        values = [plain(each, row) for each in node.values]
        return conjunction(
            [compared(*each) for each in zip(node.signs, values[:-1], values[1:], strict=True)]
        )
    name, values = node.function, [plain(each, row) for each in node.arguments]
    if name in ("min", "max", "coalesce", "if"):
        start = name == "if"
        values = values[:start] + [of_sort(value, sort(node)) for value in values[start:]]
    match name:
        case "and":
            return conjunction(values)
        case "or":
            return True if True in values else None if None in values else False
        case "if":
            return values[1] if values[0] else values[2]
        case "coalesce":
            return next((value for value in values if value is not None), None)
        case "is_null":
            return values[0] is None
        case "in":
            return None if values[0] is None else any(compared("==", values[0], each) for each in values[1:])
    if None in values:
        return None
    first = values[0]
    match name:
        case "+" | "-" | "*" | "/" | "//" | "%":
            return arithmetic(name, *values)
        case "negative":
            return arithmetic("-", 0, first) if isinstance(first, int) else -first
        case "not":
            return not first
        case "abs":
            return of_sort(abs(first), sort(node))
        case "round" | "floor" | "ceil":
            return rounded(name, first)
        case "sqrt":
            return real(lambda: math.sqrt(first))
        case "log":
            return -math.inf if first == 0 else real(lambda: math.log(first))
        case "exp":
            return real(lambda: math.exp(first))
        case "min" | "max":
            return min(values) if name == "min" else max(values)
        case "lower" | "upper":
            return first.lower() if name == "lower" else first.upper()
        case "length":
            return len(first)
        case "starts_with":
            return first.startswith(values[1])
        case "ends_with":
            return first.endswith(values[1])
        case "contains":
            return values[1] in first
        case "weekday":
            return first.weekday()
        case "date":
            return first.date() if isinstance(first, datetime.datetime) else first
        case "days":
            return first.toordinal() - datetime.date(1970, 1, 1).toordinal()
        case "seconds":
            return (first - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) / 1e6
        case _:
            return getattr(first, name)


INTEGERS = st.one_of(
    st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1])
)
FLOATS = st.one_of(st.sampled_from([0.0, 1.0, -2.5, 0.5, 2.0**63, -(2.0**63)]), st.floats())
TEXTS = st.text("aA zÄé", max_size=4)
DATES = st.dates()
TIMES = st.datetimes()
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int64(), INTEGERS),
    "j": (pa.int64(), INTEGERS),
    "u": (pa.uint64(), st.one_of(st.integers(0, 3), st.integers(2**63 - 2, 2**64 - 1))),
    "f": (pa.float64(), FLOATS),
    "g": (pa.float64(), FLOATS),
    "b": (pa.bool_(), st.booleans()),
    "c": (pa.bool_(), st.booleans()),
    "t": (pa.string(), TEXTS),
    "s": (pa.string(), TEXTS),
    "d": (pa.date32(), DATES),
    "e": (pa.date32(), DATES),
    "w": (pa.timestamp("us"), TIMES),
    "v": (pa.timestamp("us"), TIMES),
}


def calls(name: str, *arguments: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.tuples(*arguments).map(lambda each: Call(name, each))


def nodes(kind: str, level: int) -> st.SearchStrategy[Node]:
    """Return expressions of a kind: number, text, truth, date or time."""
    columns = {"number": "ijufg", "truth": "bc", "text": "ts", "date": "de", "time": "wv"}[kind]
    choices: list[st.SearchStrategy[Node]] = [st.sampled_from([Column(name) for name in columns])]
    if kind == "number":
        finite = FLOATS.filter(math.isfinite)
        choices.append(st.one_of(INTEGERS, st.integers(2**63, 2**64 - 1), finite).map(Literal))
    elif kind == "text":
        choices.append(TEXTS.map(Literal))
    elif kind == "truth":
        choices.append(st.booleans().map(Literal))
    if level == 0:
        return st.one_of(choices)

    def inner(of: str = kind) -> st.SearchStrategy[Node]:
        return st.deferred(lambda: nodes(of, level - 1))

    choices += [calls("coalesce", inner(), inner()), calls("if", inner("truth"), inner(), inner())]
    if kind != "truth":
        choices += [calls(name, inner(), inner()) for name in ("min", "max")]
    if kind == "number":
        choices += [calls(name, inner(), inner()) for name in ("+", "-", "*", "/", "//", "%")]
        unary = ("negative", "abs", "round", "floor", "ceil", "sqrt", "log", "exp")
        choices += [calls(name, inner()) for name in unary]
        choices += [calls(name, inner("date")) for name in ("year", "month", "day", "weekday")]
        choices += [calls(name, inner("time")) for name in ("year", "day", "hour", "minute", "seconds")]
        choices += [calls("length", inner("text")), calls("days", inner("date"))]
    elif kind == "text":
        choices += [calls(name, inner()) for name in ("lower", "upper")]
    elif kind == "date":
        choices += [calls("date", inner("time")), calls("date", inner())]
    elif kind == "truth":
        choices += [calls(name, inner(), inner()) for name in ("and", "or")] + [calls("not", inner())]
        signs = st.sampled_from(list(SIGNS))
        for of in ("number", "text", "date", "time"):
            pair = st.tuples(signs.map(lambda sign: (sign,)), st.tuples(inner(of), inner(of)))
            choices.append(pair.map(lambda each: Comparison(*each)))
            choices.append(calls("is_null", inner(of)))
        chain = st.tuples(st.tuples(signs, signs), st.tuples(*[inner("number")] * 3))
        choices.append(chain.map(lambda each: Comparison(*each)))
        for name in ("starts_with", "ends_with", "contains"):
            choices.append(calls(name, inner("text"), TEXTS.map(Literal)))
        choices.append(
            calls("in", inner("number"), INTEGERS.map(Literal), FLOATS.filter(math.isfinite).map(Literal))
        )
        choices.append(calls("in", inner("text"), TEXTS.map(Literal), TEXTS.map(Literal)))
    return st.one_of(choices)


ROWS = st.lists(
    st.fixed_dictionaries({name: st.one_of(st.none(), values) for name, (_, values) in COLUMNS.items()}),
    max_size=4,
)


def table(rows: list[Row]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in COLUMNS.items()}


def alike(got: Any, expected: Any) -> bool:
    """Return whether two values are the same, of the same type."""
    return type(got) is type(expected) and got == expected


@settings(max_examples=400, deadline=None)
@given(st.one_of([nodes(kind, 2) for kind in ("number", "text", "truth", "date", "time")]), ROWS)
def test_arrow_agrees_with_python_row_by_row(node: Node, rows: list[Row]) -> None:
    got = run_node(node, table(rows), len(rows))
    expected = [plain(node, row) for row in rows]
    assert all(map(alike, got, expected)), (got, expected)


@settings(max_examples=150, deadline=None)
@given(st.one_of([nodes(kind, 2) for kind in ("number", "text", "truth", "date", "time")]), ROWS)
def test_no_row_sees_another(node: Node, rows: list[Row]) -> None:
    together = evaluate(node, lambda name: column_values(name, table(rows)[name]), len(rows))
    alone = [evaluate(node, lambda name, row=row: column_values(name, table([row])[name]), 1) for row in rows]
    assert {each.type for each in alone} <= {together.type}
    assert repr(together.to_pylist()) == repr([value for each in alone for value in each.to_pylist()])
    held = {
        name: values.dictionary_encode() if name in "ts" else values for name, values in table(rows).items()
    }
    by_dictionary = evaluate(node, lambda name: column_values(name, held[name]), len(rows))
    assert repr(by_dictionary.to_pylist()) == repr(together.to_pylist())


def test_columns_of_every_type_are_read() -> None:
    numbers = [pa.array([3, None], pa.int8()).cast(kind) for kind in (pa.int16(), pa.uint32(), pa.uint64())]
    numbers += [
        pa.array([3.0, None]).cast(kind) for kind in (pa.float16(), pa.float32(), pa.decimal128(9, 2))
    ]
    numbers += [pa.array([3, None]).dictionary_encode()]
    assert [run("x + 1", x=column) for column in numbers] == [[4, None]] * 7
    texts = [pa.array(["DE", None], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    texts += [pa.array(["DE", None]).dictionary_encode()]
    assert [run("x == 'DE'", x=column) for column in texts] == [[True, None]] * 4
    days = [pa.array([15_706, None], pa.int32()).cast(pa.date32())]
    days += [pa.array([15_706 * 86_400_000 + 5, None], pa.int64()).view(pa.date64())]
    assert [run("x == '2013-01-01'", x=column) for column in days] == [[True, None]] * 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("size", [1, 127, 128])
def test_a_dictionary_may_be_full(kind: pa.DataType, size: int) -> None:
    indices = pa.array([None, size - 1, 0], kind)
    column = pa.DictionaryArray.from_arrays(indices, [f"text {i}" for i in range(size)])
    assert run(f"x == 'text {size - 1}'", x=column) == [None, True, size == 1]
    assert run("is_null(x)", x=column) == [True, False, False]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_times_of_every_unit_are_read_in_utc(unit: str, per_second: int, zone: str | None) -> None:
    when = pa.array([1_357_020_000 * per_second, -1, None], pa.timestamp(unit, tz=zone))
    assert run("hour(t)", t=when) == [6, 23, None]
    assert run("date(t) < '2013-01-01' or t >= '2013-01-01T06:00'", t=when) == [True, True, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_time_far_away_is_null(unit: str) -> None:
    """Arrow's own functions would give other years, or overflow."""
    per_day = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}[unit]
    first, last = (datetime.date(year, 1, 1).toordinal() - 719_163 for year in (1, 9999))
    edges = [first * per_day, first * per_day - 1, (last + 365) * per_day - 1, (last + 365) * per_day]
    when = pa.array([*edges, 2**63 - 1, -(2**63)], pa.timestamp(unit))
    assert run("year(t)", t=when) == [1, None, 9999, None, None, None]
    alone = [run("year(t)", t=when.slice(row, 1))[0] for row in range(len(when))]
    assert alone == run("year(t)", t=when), "what is read of a row depends on it alone"
    days = pa.array([first, first - 1, last + 364, last + 365, 2**31 - 1], pa.int32()).view(pa.date32())
    assert run("year(d)", d=days) == [1, None, 9999, None, None]
    assert [run("year(d)", d=days.slice(row, 1))[0] for row in range(len(days))] == run("year(d)", d=days)


def test_text_that_is_not_utf8_is_null_where_its_letters_matter() -> None:
    """Arrow reads it from a file as it is, and refuses the whole column only when it changes case."""
    bad = pa.array([b"A\xff", b"B", None]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, bad.buffers())
    assert run("lower(x)", x=text) == [None, "b", None]
    assert run("x == 'B'", x=text) == [False, True, None]
    assert run("contains(x, 'A')", x=text) == [True, False, None]
    assert run("length(x) > 0", x=text) == [True, True, None]


def test_a_text_is_as_long_as_it_has_characters() -> None:
    assert run("length(x)", x=pa.array(["é", "Ää😀", "", None])) == [1, 3, 0, None]


@pytest.mark.parametrize("text", [b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80"])
@pytest.mark.parametrize("function", ["lower", "upper"])
def test_whether_a_text_is_utf8_does_not_depend_on_other_rows(function: str, text: bytes) -> None:
    """Arrow changes the case of these surrogates and overlong bytes, but not of b"\\xff"."""
    for others in ([], [b"A"], [b"\xff"], [None, b"\xff", b"A"]):
        rows = pa.array([text, *others], pa.binary())
        x = pa.Array.from_buffers(pa.string(), len(rows), rows.buffers())
        assert run(f"{function}(x)", x=x)[0] is None
        assert run(f"{function}(x)", x=x.dictionary_encode())[0] is None


@pytest.mark.parametrize("kind", [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns", "UTC")])
def test_a_text_beside_a_column_with_a_zone_may_have_one(kind: pa.DataType) -> None:
    """An instant is the same in every zone; a text without one is in UTC, and so is what is derived."""
    hours = [datetime.datetime(2026, 11, 3, hour, tzinfo=datetime.UTC) for hour in (22, 23)]
    t = pa.array([*hours, None], pa.timestamp("us", "UTC")).cast(kind)
    for text in (
        "2026-11-03T23:00:00Z",
        "2026-11-04T00:00+01:00",
        "2026-11-03 18:00:00.0-05:00",
        "2026-11-03T23:00",
    ):
        assert run(f"t >= '{text}'", t=t) == [False, True, None]
        assert run(f"'{text}' > t", t=t) == [True, False, None]
        assert run(f"t in ['{text}', '2026-11-01']", t=t) == [False, True, None]
    assert run("max(t, '2026-11-03T22:30Z') == t", t=t) == [False, True, None]
    assert run("t == coalesce(t, '2026-11-03T22:30')", t=t.dictionary_encode()) == [True, True, None]
    assert run("hour(t) == 23 and date(t) == '2026-11-03' and t > t", t=t) == [False, False, None]
    assert run("is_null(t)", t=t) == [False, False, True]
    assert evaluate(parse_expression("t"), lambda _: with_zone(column_values("t", t), t.type), 3).type == TIME


READ = {
    "number(t)": {"1": 1.0, " -2.5 ": -2.5, "7e2": 700.0, "+3": 3.0, "-0": -0.0, "9" * 20: 1e20},
    "date(t)": {"2026-01-31": datetime.date(2026, 1, 31), "\t0001-01-01": datetime.date(1, 1, 1)},
    "timestamp(t)": {
        "2026-01-31": datetime.datetime(2026, 1, 31),
        "2026-01-31 06:30": datetime.datetime(2026, 1, 31, 6, 30),
        "2026-01-31T06:30:00.1234567+01:00": datetime.datetime(2026, 1, 31, 5, 30, 0, 123456),
        "9999-12-31T23:59:59.999999Z": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    },
}
UNREAD = {
    "number(t)": ["", "1,5", "nan", "inf", "1e400", "0x1", "1 2", "eins", "\u0661", "1_000"],
    "date(t)": ["", "2026-02-30", "2026-01-31T06:00", "31.01.2026", "2026-1-31", "0000-01-01", "20260131"],
    "timestamp(t)": ["", "2026-01-31T24:00", "2026-02-29", "06:30", "2026-01-31T06:30:00+25:00"],
}


@pytest.mark.parametrize("text", READ)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), None])
def test_text_is_read_row_by_row(text: str, kind: pa.DataType | None) -> None:
    """A text that cannot be read is null, and so are none of those beside it."""
    known, strange = READ[text], UNREAD[text]
    pairs = [*known.items(), *((each, None) for each in (*strange, None))]
    texts = pa.array([each for each, _ in pairs], kind or pa.string())
    held = texts.dictionary_encode() if kind is None else texts
    got = run(text, t=held)
    assert all(map(alike, got, [value for _, value in pairs])), got
    for each, value in pairs:
        assert alike(run(text, t=pa.array([each], pa.string()))[0], value)


def test_text_that_is_not_utf_8_is_no_number_and_no_date() -> None:
    broken = pa.array([b"\xff1", b"1", b"2026-01-31", b"2026-01-31\xe9"], pa.binary()).view(pa.string())
    assert run("number(t)", t=broken) == [None, 1.0, None, None]
    assert run("date(t)", t=broken) == [None, None, datetime.date(2026, 1, 31), None]


def test_numbers_and_times_are_read_as_they_are() -> None:
    """So a column may be text in some files and numbers or times in others."""
    assert run("number(x)", x=pa.array([1, 2**53 + 1, None])) == [1.0, 2.0**53, None]
    assert run("number(u)", u=pa.array([2**64 - 1], pa.uint64())) == [2.0**64]
    day, time = datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 6)
    assert run("date(d)", d=pa.array([day, None])) == [day, None]
    assert run("timestamp(w)", w=pa.array([time, None], pa.timestamp("us"))) == [time, None]
    beside = run(
        "if(x > number('1'), date('2026-01-31'), date(timestamp('2026-02-01 10:00')))", x=pa.array([1, 2])
    )
    assert beside == [datetime.date(2026, 2, 1), day]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "w < '2026-11-03T00:00Z'",
            "has a zone, which timestamps beside it do not have: write it without one",
        ),
        ("w in ['2026-11-03T00:00:00+01:00']", "has a zone, which timestamps beside it do not have"),
        ("hour(z) == 1 and z < '2026-11-03T00:00z'", "is not a timestamp, such as '2013-01-31T06:00Z'"),
        ("z < '2026-11-03Z'", "is not a timestamp, such as"),
        ("z < '2026-11-03T00:00+25:00'", "is not a timestamp, such as"),
        ("z < '0001-01-01T00:00+01:00'", "is not a timestamp, such as"),
        ("d < '2026-11-03T00:00Z'", "is not a date, such as"),
    ],
)
def test_a_zone_that_does_not_fit_is_refused(text: str, problem: str) -> None:
    kinds = {"w": pa.timestamp("us"), "z": pa.timestamp("us", "UTC"), "d": pa.date32()}
    with pytest.raises(ExpressionError, match=re.escape(problem)):
        run(text, **{name: pa.nulls(0, kind) for name, kind in kinds.items()})


def test_the_least_and_the_greatest_whole_number_are_values_and_those_beyond_are_null() -> None:
    least, half = -(2**63), 2**62
    assert run("i // j", i=pa.array([least, least, least]), j=pa.array([-1, 1, 2])) == [None, least, -half]
    assert run("i * 2", i=pa.array([-half, half, half - 1])) == [least, None, 2**63 - 2]
    assert run("i - 1", i=pa.array([least + 1, least])) == [least, None]
    assert run("i + 1", i=pa.array([2**63 - 2, 2**63 - 1])) == [2**63 - 1, None]
    for function in ("round", "floor", "ceil"):
        found = run(f"{function}(f)", f=pa.array([2.0**63, 2.0**63 - 1024, -(2.0**63), -(2.0**63) - 2048]))
        assert found == [None, 2**63 - 1024, least, None]


def test_whole_numbers_are_exact_beyond_float64() -> None:
    x = pa.array([2**53, 2**53 + 1, 2**63 - 1, None])
    assert run("x == 9007199254740993", x=x) == [False, True, False, None]
    assert run("x * 2 // 2", x=x) == [2**53, 2**53 + 1, None, None]
    assert run("x in [9007199254740993]", x=x) == [False, True, False, None]
    u = pa.array([2**64 - 1, 0], pa.uint64())
    assert run("u == 18446744073709551615", u=u) == [True, False]
    assert run("u in [18446744073709551615, -1]", u=u) == [True, False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t + 1", "+ takes numbers, but here it has text and a number"),
        ("t > 1", "> takes values of one kind, but here it has text and a number"),
        ("b > true", "> does not take true or false"),
        ("min(b, b)", "min does not take true or false"),
        ("b and x", "and takes true or false, but here it has true or false and a number"),
        ("not x", "not takes true or false"),
        ("-t", "- takes numbers"),
        ("x == null", "== null is never true: use is_null"),
        ("x in [1, null]", "in null is never true"),
        ("t in ['a', 1]", "in takes values of one kind"),
        ("d == '2013-13-01'", "'2013-13-01' is not a date, such as '2013-01-31'"),
        ("d == '2013-01-01T00:00'", "is not a date"),
        ("w == '20130101'", "is not a timestamp"),
        ("w == '2013-01-01T24:00'", "is not a timestamp"),
        ("w > d", "takes values of one kind, but here it has a timestamp and a date"),
        ("hour(d)", "hour takes a timestamp"),
        ("year('2013-01-01') > x", "year takes a date or a timestamp"),
        ("date(x)", "date takes a date, a timestamp or text, but here it has a number"),
        ("timestamp(d)", "timestamp takes a timestamp or text, but here it has a date"),
        ("number(b)", "number takes a number or text, but here it has true or false"),
        ("days(t)", "days takes a date, but here it has text: read the text by date(...)"),
        ("hour(t)", "hour takes a timestamp, but here it has text: read the text by timestamp(...)"),
        ("month(t)", "has text: read the text by date(...) or timestamp(...)"),
        ("d > date('2026-02-30')", "date cannot read '2026-02-30'"),
        ("x > number('1,5')", "number cannot read '1,5'"),
        ("w > timestamp('noon')", "timestamp cannot read 'noon'"),
        ("seconds(d)", "seconds takes a timestamp"),
        ("days(w)", "days takes a date"),
        ("lower(x)", "lower takes text"),
        ("contains(t, t)", "contains takes a column and then a text in quotes"),
        ("contains(x, 'a')", "contains takes texts"),
        ("if(x, 1, 2)", "if takes a condition that is true or false"),
        ("if(b, t, 2)", "if takes values of one kind"),
        ("if(b, null, null)", "if has only null"),
        ("coalesce(t, 1)", "coalesce takes values of one kind"),
        ("n == 1", "n is list<item: int64>, but an expression reads integers"),
        ("z == 1", "z is time64[us], but an expression reads integers"),
    ],
)
def test_kinds_that_do_not_fit_are_refused_without_a_row(text: str, problem: str) -> None:
    kinds = {"t": pa.string(), "b": pa.bool_(), "x": pa.int32(), "d": pa.date32(), "w": pa.timestamp("ms")}
    kinds |= {"n": pa.list_(pa.field("item", pa.int64())), "z": pa.time64("us")}
    with pytest.raises(ExpressionError) as error:
        run(text, **{name: pa.nulls(0, kind) for name, kind in kinds.items()})
    assert problem in str(error.value)


@pytest.mark.parametrize("function", ["log", "exp", "sqrt"])
def test_a_function_of_numbers_gives_the_same_bits_at_every_place(function: str) -> None:
    """Otherwise a row more in a file would move another one."""
    values = np.random.default_rng(1).lognormal(0, 2, 1009)
    node = parse_expression(f"{function}(x)")
    alone = np.array([run_node(node, {"x": pa.array(values[i : i + 1])}, 1)[0] for i in range(len(values))])
    for start in range(17):
        for held in (pa.array(values)[start:], pa.array(values[start:])):
            assert np.array_equal(run_node(node, {"x": held}, len(held)), alone[start:])


def test_a_chain_of_comparisons_holds_where_all_of_them_do() -> None:
    assert run("1 < x <= 3", x=pa.array([1, 2, 3, 4, None])) == [False, True, True, False, None]


@pytest.mark.parametrize(
    "day", [datetime.date(1900, 3, 1), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)]
)
def test_a_date_begins_at_midnight(day: datetime.date) -> None:
    first = datetime.datetime.combine(day, datetime.time())
    times = [first - datetime.timedelta(microseconds=1), first, first + datetime.timedelta(hours=23)]
    assert run("date(x)", x=pa.array(times, pa.timestamp("us"))) == [
        day - datetime.timedelta(days=1),
        day,
        day,
    ]
