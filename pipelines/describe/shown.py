"""What a release says of every column of a file, as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from core.quantiles.found import Promises
from pipelines.answers.answer import Rows, Table, promises_of
from pipelines.answers.text import DENSE, confidence, counted, key_text, number
from pipelines.describe.columns import PROBABILITIES, ROWS, Described, Description
from pipelines.joint_release import answers_of
from pipelines.report.summary import cut, spent, table_lines

_TENFOLD, _MANY_STEPS = 10, 100

_MOST_VALUES = 5
"""Values of a text that are shown: those with the most rows."""


def show_description(
    description: Description, release: Mapping[str, Any], tables: Mapping[str, Rows]
) -> list[str]:
    """Return the lines that describe the columns.

    Args:
        description: what was asked.
        release: a value as in release.json.
        tables: of each question, if its answer is one.
    """
    answers = answers_of(release)
    about = answers[ROWS]
    values, many = (about["result"] or {"values": ()})["values"], counted(about).many
    total = next((each["value"] for each in values if each["measure"] == "count"), None)
    error = next((number(each["error"], 2) for each in values if each["measure"] == "count"), "")
    nulls = {each["column"]: _share(each["value"]) for each in values if each["measure"] == "mean"}
    of_nulls = [each["error"] for each in values if each["measure"] == "mean" and each["error"] is not None]
    numbers, texts = [], []
    for place, column in enumerate(description.columns):
        head, answer = (column.name, column.kind, nulls.get(place, "?")), answers[column.question]
        if answer["task"] == "quantiles":
            numbers.append((*head, *_quantiles(column, answer)))
        else:
            texts.append((*head, _by_value(column, tables[column.question])))
    known = total is not None
    lines = [
        f"{total:,} {many}, with a standard error of {error}." if known else "The number is not known.",
        "",
    ]
    if numbers:
        shares = tuple(f"{100 * p:g}%" for p in PROBABILITIES)
        lines += [*table_lines(Table("Quantiles", ("column", "type", "null", *shares), numbers), None), ""]
    if texts:
        headers = ("column", "type", "null", f"most frequent values, and their {many}")
        lines += [*table_lines(Table("Values", headers, texts), None, None), ""]
    if description.others:
        lines += [f"Not described: {', '.join(description.others)}.", ""]
    if of_nulls:
        lines.append(f"The standard error of a share of nulls is {_share(max(of_nulls))}.")
    return [
        *lines,
        *_ranks(description, answers, total),
        f"All columns together spent {spent(release['privacy'])}.",
    ]


def _quantiles(column: Described, answer: Mapping[str, Any]) -> list[str]:
    """Return the quantiles; where the interval of one reaches an end of the type, its other end.

    Too few rows then lie on that side to tell where the quantile is: the released value may be far from all
    rows. Where the ends differ more than tenfold or in their signs, the interval stands in the place of the
    value, for the same reason. The value is in the release all the same.
    """
    result, domain = answer["result"], answer["domain"]
    low, high = domain["lower"][0], domain["upper"][0]

    def shown(value: Any) -> str:
        if isinstance(value, int | float):
            return f"{int(value):,}" if column.parts == 1 else number(value / column.parts, 6)
        return str(value)

    known = []
    for value, first, last in zip(result["values"], result["lows"], result["highs"], strict=True):
        below, above = first == low, last == high
        if first == last:
            known.append(shown(value))
        elif not (below or above):
            known.append(f"{shown(first)} to {shown(last)}" if _far(first, last) else shown(value))
        else:
            known.append("?" if below and above else f"≤ {shown(last)}" if below else f"≥ {shown(first)}")
    return known


def _far(first: Any, last: Any) -> bool:
    """Return whether two numbers of steps differ more than tenfold, or in their signs, and by many steps.

    Dates never do.
    """
    if not isinstance(first, int | float):
        return False
    small, large = sorted((abs(first), abs(last)))
    return bool((large > _TENFOLD * small or first < 0 < last) and last - first > _MANY_STEPS)


def _by_value(column: Described, table: Rows) -> str:
    """Return the most frequent values of a column, each with its noisy number of rows."""
    if table is None or column.name not in table or not len(table[column.name]):
        return "no value was found"
    found = sorted(zip(table["count"], table[column.name], strict=True), key=lambda pair: -pair[0])
    most = [f"{cut(key_text([value]))} {int(count):,}" for count, value in found[:_MOST_VALUES]]
    more = len(found) - len(most)
    return ", ".join(most) + (f" and {more:,} more" if more > 0 else "")


def _ranks(
    description: Description, answers: Mapping[str, Mapping[str, Any]], total: float | None
) -> list[str]:
    """Return how far off the ranks of quantiles are, of a released number of records."""
    asked = [answers[each.question] for each in description.columns]
    ranks = [each for each in asked if each["task"] == "quantiles"]
    if not ranks:
        return []
    promised = [promises_of(Promises, each) for each in ranks]
    typical = max(each.typical_rank_error or 0 for each in promised)
    worst = max(each.rank_error or 0 for each in promised)
    many = counted(ranks[0]).promised
    says = (
        f"With probability {confidence(ranks[0])}, all quantiles of a column are within {worst:,} {many} of "
    )
    if total is not None and worst > total:
        says += (
            f"their rank. There are fewer {many}, so this promises nothing: describe fewer columns "
            "(--columns), or give a larger --epsilon."
        )
    else:
        says += (
            f"their rank. {DENSE.format(many=many)}, the standard error of the rank of a quantile is at most "
            f"about {number(typical, 2)} {many}."
        )
    return [
        says,
        "≤ and ≥ stand where too few rows are beyond a value to say more, and ? where nothing is known. Two "
        "numbers are an interval, where a value could be anything between them: `shoal init bounds` makes a "
        "job that finds the range of a column with less of the budget.",
    ]


def _share(value: float | None) -> str:
    return "?" if value is None else f"{number(100 * min(max(value, 0.0), 1.0), 2)}%"
