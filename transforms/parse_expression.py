"""Read an expression over the columns of one row: a small part of Python's syntax.

The grammar is that of Python's expressions. A white list then admits columns, literals, operators and a few
functions. Nothing of an expression is ever run as Python.
"""

import ast
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

_LONGEST, _MOST_NODES, _DEEPEST = 10_000, 1_000, 50
"""Most characters, nodes and levels of an expression."""

_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1

FUNCTIONS = {
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "weekday", "date", "days", "seconds"), (1, 1)),
    **dict.fromkeys(("lower", "upper", "length", "number", "timestamp"), (1, 1)),
    **dict.fromkeys(("starts_with", "ends_with", "contains"), (2, 2)),
    **dict.fromkeys(("abs", "round", "floor", "ceil", "sqrt", "log", "exp", "is_null"), (1, 1)),
    **dict.fromkeys(("min", "max", "coalesce"), (2, 20)),
    "if": (3, 3),
}
"""The functions, each with the least and the most number of its arguments."""

_AGGREGATES = (
    "all any approx_distinct array_agg average avg count cumsum dense_rank diff distinct first "
    "first_value group_by lag last last_value lead len mad mean median mode ntile nunique over "
    "percentile quantile rank row_number shift size skew sort std stddev sum total unique "
    "value_counts var variance window"
)
"""Names of functions of many rows, in SQL, pandas or polars, with spaces between."""

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.And: "and",
    ast.Or: "or",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_HINTS: dict[type[ast.AST], str] = {
    ast.Attribute: "a name with a dot must be in back quotes, such as `a.b`",
    ast.IfExp: "write if(condition, a, b)",
    ast.Pow: "there is no power: use * or exp",
    ast.BitAnd: "write and",
    ast.BitOr: "write or",
    ast.Invert: "write not",
    ast.Is: "write == or is_null",
    ast.IsNot: "write != or is_null",
}

_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|`[^`]+`|[^\W\d]\w*|[^'"`#\\]""")
_IF = "_if"
"""What the function `if`, whose name Python reserves, is called while Python parses."""

_CONSTANTS = {"true": True, "false": False, "null": None}


_SQL = {
    r"(?<![=!<>])=(?!=)": "equal is ==",
    r"<>": "unequal is !=",
    r"\b(AND|OR|NOT|IN)\b": "and, or, not and in are in lower case",
    r"(?i)\blike\b": "of texts there are starts_with and contains",
    r"(?i)\bis\s+(not\s+)?null\b": "is_null(x) is true of a null",
    r"(?i)\bbetween\b": "between is 1 <= x <= 2",
    r"(?i)\bcase\b": "case is if(condition, one, other)",
}
"""What somebody may write who knows SQL, as a regular expression, and what stands here for it."""


class ExpressionError(ValueError):
    """An expression that is not one. The text is a clause about it, without the name of its field."""


@dataclass(frozen=True)
class Column:
    """The value of a column in the row."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A number, a text, true, false or null."""

    value: bool | int | float | str | None


@dataclass(frozen=True)
class Call:
    """An operator or function of values.

    Args:
        function: a key of `FUNCTIONS`, or an operator: `+ - * / // % and or not in`, or `negative`.
        arguments: its operands; of `in`, the value, and then what it is looked for among.
    """

    function: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True)
class Comparison:
    """A chain of comparisons, such as `0 <= x < 1`: each value is compared with the next one.

    Args:
        signs: `== != < <= > >=`.
        values: one more than signs.
    """

    signs: tuple[str, ...]
    values: tuple["Node", ...]


Node = Column | Literal | Call | Comparison


def parse_expression(text: str, constant: bool = False) -> Node:
    """Parse an expression.

    Args:
        text: the expression, on one line.
        constant: whether it may be one number, which every row then has.

    Raises:
        ExpressionError: it is too large, is not in the language, or names no column.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(f"it has {len(text):,} characters, and an expression may have {_LONGEST:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as 1or x, which Python reads with a warning
            tree = ast.parse(_as_python(text).strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, Warning) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(
            f"it cannot be read as an expression, such as amount > 0 and country == 'DE'{_of_sql(text)}"
        ) from None
    node = _Reader().read(tree, 1)
    if next(columns_of(node), None) is None and not (constant and _is_number(node)):
        raise ExpressionError("it names no column, so it would be the same for every row")
    return node


def columns_of(node: Node) -> Iterator[str]:
    """Yield the name of each column in an expression, as often as it occurs."""
    if isinstance(node, Column):
        yield node.name
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from columns_of(argument)
    elif isinstance(node, Comparison):
        for value in node.values:
            yield from columns_of(value)


def longest_text(node: Node) -> int:
    """Return the bytes of the longest text that an expression itself has."""
    if isinstance(node, Literal):
        return len(node.value.encode()) if isinstance(node.value, str) else 0
    parts = {Call: "arguments", Comparison: "values"}.get(type(node), "")
    return max(map(longest_text, getattr(node, parts, ())), default=0)


def _is_number(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, int | float) and not _is_bool(node.value)


def near(name: str, names: Iterator[str] | list[str]) -> str:
    """Return a clause with the names most like `name`; empty if there are none."""
    found = get_close_matches(name, list(names), 3, 0.5)
    return f"; the nearest {'name is' if len(found) == 1 else 'names are'} {', '.join(found)}" * bool(found)


def _of_sql(text: str) -> str:
    """Return a clause with what stands here for words and signs of SQL in the text; empty without any."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", " ", text)
    found = [instead for sign, instead in _SQL.items() if re.search(sign, bare)]
    return f"; {', '.join(found)}" * bool(found)


def _as_python(text: str) -> str:
    """Return an expression as Python's syntax has it.

    A text has no escapes, and ends at the quote with which it begins. A name in back quotes, and one that
    Python would normalize, become calls of `col`.
    """
    parts: list[str] = []
    at, was_text = 0, False
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = "a quote that is not closed" if text[at] in "'\"`" else text[at]
            raise ExpressionError(f"it has {what} at character {at + 1}")
        part, at = found[0], found.end()
        if part[0] in "'\"":
            if was_text:
                raise ExpressionError(
                    "it has two texts side by side; put a text with a ' in it between double quotes"
                )
            parts.append(f" {part[1:-1]!r} ")
        elif part[0] == "`":
            parts.append(f" col({part[1:-1]!r}) ")
        elif part == "if" and text[at:].lstrip().startswith("("):
            parts.append(_IF)
        elif part.isidentifier() and not part.isascii():
            parts.append(f" col({part!r}) ")
        else:
            parts.append(part)
        was_text = part[0] in "'\"" or (was_text and part.isspace())
    return "".join(parts)


def _too_large() -> ExpressionError:
    return ExpressionError(
        f"it has more than {_MOST_NODES:,} parts, or more than {_DEEPEST} levels of them: make it smaller"
    )


class _Reader:
    """Translate Python's syntax tree, and count the nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def read(self, tree: ast.AST, level: int) -> Node:
        """Return the node of a tree at a level."""
        self.nodes += 1
        if level > _DEEPEST or self.nodes > _MOST_NODES:
            raise _too_large()

        def inner(*trees: ast.AST) -> tuple[Node, ...]:
            return tuple(self.read(each, level + 1) for each in trees)

        match tree:
            case ast.Constant(value):
                return _literal(value)
            case ast.Name(name):
                return Literal(_CONSTANTS[name]) if name in _CONSTANTS else Column(name)
            case ast.UnaryOp(ast.Not(), operand):
                return Call("not", inner(operand))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not _is_bool(value):
                return _literal(-value)
            case ast.UnaryOp(ast.USub(), operand):
                return Call("negative", inner(operand))
            case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
                return Call(_OPERATORS[type(operator)], inner(left, right))
            case ast.BoolOp(operator, values):
                return Call(_OPERATORS[type(operator)], inner(*values))
            case ast.Compare(left, [ast.In() | ast.NotIn() as operator], [right]):
                found = Call("in", inner(left, *_listed(right)))
                if not all(isinstance(each, Literal) for each in found.arguments[1:]):
                    raise ExpressionError("it has in with a list that holds more than numbers and texts")
                return found if isinstance(operator, ast.In) else Call("not", (found,))
            case ast.Compare(left, operators, rights) if all(type(each) in _OPERATORS for each in operators):
                return Comparison(tuple(_OPERATORS[type(each)] for each in operators), inner(left, *rights))
            case ast.Call(ast.Name("col"), [ast.Constant(str() as name)], []):
                return Column(name)
            case ast.Call(ast.Name(name), arguments, []):
                return Call(_function(name, len(arguments)), inner(*arguments))
            case _:
                raise _not_allowed(tree)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _literal(value: object) -> Literal:
    if isinstance(value, int) and not _LEAST_INTEGER <= value <= _MOST_INTEGER:
        raise ExpressionError("it has a whole number of more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("it has a number that is too large for float64")
    if value is None or isinstance(value, bool | int | float | str):
        return Literal(value)
    raise ExpressionError("it has a literal that is not a number, a text, true, false or null")


def _listed(tree: ast.AST) -> list[ast.expr]:
    if isinstance(tree, ast.List | ast.Tuple) and tree.elts:
        return tree.elts
    raise ExpressionError("it has in without a list of values, such as country in ['DE', 'FR']")


def _function(name: str, arguments: int) -> str:
    name = "if" if name == _IF else name
    if name in _AGGREGATES.split():
        raise ExpressionError(f"it calls {name}, but an expression sees one row, and no other")
    if name == "col":
        raise ExpressionError("it calls col, which takes one name in quotes, such as col('first name')")
    if name not in FUNCTIONS:
        raise ExpressionError(f"it calls {name}, which is not a function{near(name, list(FUNCTIONS))}")
    least, most = FUNCTIONS[name]
    if not least <= arguments <= most:
        many = str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"it calls {name} with {arguments} values, which takes {many}")
    return name


def _not_allowed(tree: ast.AST) -> ExpressionError:
    """Return what is wrong with a part of Python's syntax that is not in the language."""
    inside = [tree, *ast.iter_child_nodes(tree)]
    hint = next((_HINTS[type(each)] for each in inside if type(each) in _HINTS), None)
    if isinstance(tree, ast.Call) and tree.keywords:
        hint = "a function takes values without names"
    what = "a part that the language does not have"
    return ExpressionError(f"it has {what}{': ' + hint if hint else ''}")
