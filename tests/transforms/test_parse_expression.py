"""Expressions are a small language: all else is one sentence, and fast."""

import time

import pytest

from transforms.evaluate_expression import _APPLY
from transforms.parse_expression import (
    FUNCTIONS,
    Call,
    Column,
    Comparison,
    ExpressionError,
    Literal,
    columns_of,
    parse_expression,
)

X = Column("x")


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("x", X),
        ("`odd name`", Column("odd name")),
        ("col('odd name')", Column("odd name")),
        ("`or`", Column("or")),
        ("`a'b\"c`", Column("a'b\"c")),
        ("größe", Column("größe")),
        ("ﬁ", Column("ﬁ")),  # Python would read the two letters fi
        ("-x", Call("negative", (X,))),
        ("x - -1", Call("-", (X, Literal(-1)))),
        ("x == -9223372036854775808", Comparison(("==",), (X, Literal(-(2**63))))),
        ("0 <= x < 1.5", Comparison(("<=", "<"), (Literal(0), X, Literal(1.5)))),
        ("x in [1, 'a']", Call("in", (X, Literal(1), Literal("a")))),
        ("x not in (1,)", Call("not", (Call("in", (X, Literal(1))),))),
        ("x and true or not x", Call("or", (Call("and", (X, Literal(True))), Call("not", (X,))))),
        ("if (x, 1, null)", Call("if", (X, Literal(1), Literal(None)))),
        ("x == 'it is \"so\"\\n'", Comparison(("==",), (X, Literal('it is "so"\\n')))),
        ('x == "\'"', Comparison(("==",), (X, Literal("'")))),
        ("x=='a'and`b c`", Call("and", (Comparison(("==",), (X, Literal("a"))), Column("b c")))),
        ("  x ", X),
        ("x // 2 % 3", Call("%", (Call("//", (X, Literal(2))), Literal(3)))),
    ],
)
def test_what_an_expression_means(text: str, node: object) -> None:
    assert parse_expression(text) == node


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cannot be read"),
        ("x +", "cannot be read"),
        ("x = 1", "cannot be read"),
        ("x; x", "cannot be read"),
        ("x) + (x", "cannot be read"),
        ("import os", "cannot be read"),
        ("1or x", "cannot be read"),
        ("x = 1", "country == 'DE'; equal is =="),
        ("x > 1 AND y = 'a'", "; equal is ==, and, or, not and in are in lower case"),
        ("x LIKE 'a%'", "; of texts there are starts_with and contains"),
        ("x between 1 and 2", "; between is 1 <= x <= 2"),
        ("x <= 1 1", "country == 'DE'"),
        ("x in [0x1for]", "cannot be read"),
        ("f'{x}'", "cannot be read"),
        ("x # 1", "has # at character 3"),
        ("x\\", "has \\ at character 2"),
        ("x == 'a", "a quote that is not closed at character 6"),
        ("`x", "a quote that is not closed at character 1"),
        ("x == 'it''s'", "two texts side by side"),
        ("1 + 1", "names no column"),
        ("'x'", "names no column"),
        ("true", "names no column"),
        ("x.__class__", "must be in back quotes"),
        ("().__class__.__bases__[0].__subclasses__()", "does not have"),
        ("__import__('os').system('true')", "does not have"),
        ("__import__('os')", "calls __import__, which is not a function"),
        ("eval('x')", "calls eval, which is not a function"),
        ("roud(x)", "; the nearest names are round"),
        ("col(x)", "calls col, which takes one name in quotes"),
        ("col()", "calls col, which takes one name in quotes"),
        ("round(x, digits=2)", "values without names"),
        ("round(*x)", "does not have"),
        ("round(x, 2)", "calls round with 2 values, which takes 1"),
        ("min(x)", "calls min with 1 values, which takes 2 to 20"),
        ("x if x else 1", "write if(condition, a, b)"),
        ("lambda: x", "does not have"),
        ("[x for x in x]", "does not have"),
        ("(y := x)", "does not have"),
        ("x[0]", "does not have"),
        ("{x}", "does not have"),
        ("(x, x)", "does not have"),
        ("x ** 2", "there is no power"),
        ("10 ** 9 ** 9 * x", "there is no power"),
        ("x & x", "write and"),
        ("x | x", "write or"),
        ("~x", "write not"),
        ("x is null", "write == or is_null"),
        ("x @ x", "does not have"),
        ("x in 3", "in without a list"),
        ("x in []", "in without a list"),
        ("x in [x]", "holds more than numbers and texts"),
        ("x in [1] in [2]", "does not have"),
        ("x > 18446744073709551616", "more than 64 bits"),
        ("x > -9223372036854775809", "more than 64 bits"),
        ("x > 1e999", "too large for float64"),
        ("x > 1j", "a literal that is not"),
        ("x > ...", "a literal that is not"),
        ("x > " + "9" * 5000, "cannot be read"),
        ("x" * 10_001, "it has 10,001 characters"),
        ("x" + " + x" * 60, "more than 50 levels"),
        ("not " * 60 + "x", "more than 50 levels"),
        ("x in [" + "1," * 2000 + "]", "more than 1,000 parts"),
        *(
            (f"{name}(x)", f"calls {name}, but an expression sees one row")
            for name in ("sum", "count", "mean")
        ),
    ],
)
def test_what_is_not_an_expression(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as error:
        parse_expression(text)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


NESTED = (
    "-",
    "not ",
    "(",
    "[",
    "x[",
    "x(",
    "x+",
    "x<",
    "x.",
    "lambda:",
    "if(",
    "{",
    "x if x else ",
    "abs(",
    "`",
    "'",
)


@pytest.mark.parametrize("part", NESTED)
@pytest.mark.parametrize("end", ["", "x"])
def test_any_nesting_ends_at_once(part: str, end: str) -> None:
    closing = {"(": ")", "[": "]", "{": "}"}.get(part[-1], "")
    for times in (60, 300, 10_000 // len(part) - 1):
        for text in (part * times + end, part * times + "x" + closing * times):
            began = time.process_time()
            try:
                parse_expression(text)
            except ExpressionError:
                refused = True
            else:
                refused = False
            assert refused or (part == "(" and times == 60) or (part == "x<" and times <= 300)
            assert time.process_time() - began < 1


def test_every_function_of_the_language_is_one_of_evaluation() -> None:
    operators = {"+", "-", "*", "/", "//", "%", "and", "or", "not", "negative"}
    assert set(_APPLY) == set(FUNCTIONS) | operators


def test_columns_are_found_wherever_they_are() -> None:
    text = "a > 1 and b in [2] or if(not c, d, -e) < f + `g h`"
    assert sorted(columns_of(parse_expression(text))) == ["a", "b", "c", "d", "e", "f", "g h"]
