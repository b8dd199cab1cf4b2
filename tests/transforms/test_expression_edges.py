"""Expressions at edges of their values: least and greatest ones, nulls, and what Arrow rounds or cuts."""

import datetime
import itertools
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.test_evaluate_expression import COLUMNS, SIGNS, Row, alike, plain, run, run_node, table
from transforms.parse_expression import Call, Column, Comparison, Node

WHOLE = (-(2**63), -7, -1, 0, 1, 3, 2**53 + 1, 2**63 - 1, None)
REAL = (-math.inf, -(2.0**63), -2.5, -0.0, 0.5, 1.5, 2.0**63 - 1024, 2.0**63, math.inf, math.nan, None)
FIRST, LEAP, LAST = (datetime.date(*day) for day in ((1, 1, 1), (2024, 2, 29), (9999, 12, 31)))
DAYS = (FIRST, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), LEAP, LAST, None)
NOON = datetime.time(12, 30, 59, 999_999)
EDGES: dict[str, Sequence[Any]] = {
    **dict.fromkeys("ij", WHOLE),
    "u": (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, None),
    **dict.fromkeys("fg", REAL),
    **dict.fromkeys("bc", (True, False, None)),
    **dict.fromkeys("ts", ("", "a", "A", "é", "zÄz", None)),
    **dict.fromkeys("de", DAYS),
    **{name: [day and datetime.datetime.combine(day, NOON) for day in DAYS] for name in "wv"},
}
OF_TWO = ("+", "-", "*", "/", "//", "%", *SIGNS, "min", "max", "coalesce")
OF_KINDS = {
    **dict.fromkeys(("ij", "ui", "if", "fg"), OF_TWO),
    "bc": ("and", "or", "==", "coalesce"),
    **dict.fromkeys(("ts", "de", "wv"), (*SIGNS, "min", "max", "coalesce")),
    **dict.fromkeys("iuf", ("negative", "abs", "round", "floor", "ceil", "sqrt", "log", "exp", "is_null")),
    "b": ("not", "is_null"),
    "t": ("lower", "upper", "length"),
    "d": ("year", "month", "day", "weekday", "days", "date"),
    "w": ("year", "month", "day", "weekday", "hour", "minute", "seconds", "date"),
}


@pytest.mark.parametrize(
    ("names", "function"), [(of, name) for of, each in OF_KINDS.items() for name in each]
)
def test_every_function_agrees_with_python_at_edges(names: str, function: str) -> None:
    """On all pairs of edges of two columns; a condition also where it is the opposite."""
    of = tuple(map(Column, names))
    node: Node = Comparison((function,), of) if function in SIGNS else Call(function, of)
    rows = [
        dict.fromkeys(COLUMNS) | dict(zip(names, values, strict=True))
        for values in itertools.product(*map(EDGES.__getitem__, names))
    ]
    both = [node, Call("not", (node,))] if function in (*SIGNS, "and", "or") else [node]
    for each in both:
        got, expected = run_node(each, table(rows), len(rows)), [plain(each, row) for row in rows]
        assert [pair for pair in zip(rows, got, expected, strict=True) if not alike(*pair[1:])] == []


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("i in (0, 9007199254740993)", {"i": [0, 2**53, 2**53 + 1, None]}, [True, False, True, None]),
        ("i in (0, 0.5)", {"i": [0, 1, None]}, [True, False, None]),
        ("f in (1, 0.5)", {"f": [1.0, 0.5, math.nan, None]}, [True, True, None, None]),
        ("u in (0, 18446744073709551615)", {"u": [0, 2**64 - 1, 2**63, None]}, [True, True, False, None]),
        ("t in ('é', '')", {"t": ["é", "", "e", None]}, [True, True, False, None]),
        ("not t in ('a', 'b')", {"t": ["a", "c", None]}, [False, True, None]),
        ("min(i, 0)", {"i": [-1, 1, None]}, [-1, 0, None]),
        ("if(b, i, 7)", {"b": [True, False, None, True], "i": [1, 2, 3, None]}, [1, 7, 7, None]),
        ("starts_with(t, 'é')", {"t": ["é", "éa", "aé", "", None]}, [True, True, False, False, None]),
        ("ends_with(t, 'é')", {"t": ["é", "éa", "aé", "", None]}, [True, False, True, False, None]),
        ("contains(t, '.é')", {"t": [".é", "a.éa", "aé", "", None]}, [True, True, False, False, None]),
    ],
)
def test_values_beside_literals(text: str, rows: Row, expected: list[Any]) -> None:
    assert run(text, **{name: pa.array(each, COLUMNS[name][0]) for name, each in rows.items()}) == expected
