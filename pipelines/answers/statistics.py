"""Answers of statistics: counts, sums, means, variances and ranks, of all records or of groups."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.statistics.found import Promises, Result, Value
from pipelines.answers.answer import (
    Answer,
    Fact,
    Figure,
    Release,
    Rows,
    Table,
    domain_of,
    length_of,
    promises_of,
    result_of,
    steps_of,
)
from pipelines.answers.axis import Axis
from pipelines.answers.checks import hidden
from pipelines.answers.measure_names import in_table, listed, names_of
from pipelines.answers.picture import MOST_STRIPS, Row, Strip, short, strips
from pipelines.answers.text import (
    Counted,
    beside,
    counted,
    key_names,
    nothing_found,
    number,
    place_of_table,
    plain,
    row_key,
    true_one,
    truth,
)
from pipelines.dates import Span, TimeColumn, times_of
from pipelines.quantities import after, titled

_LEAD = "Each number has its standard error beside it, in the table of the release."
_OF_RANKS = (
    " That of a quantile, a minimum or a maximum is in rows, and is the typical one of dense rows. An "
    "interval as wide as the domain says nothing."
)

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHOWN, _IN_ORDER = 12, 48
"""Groups in the table of the report: the largest, or all in the order of their keys, if these have one."""

_STANDARD_ERROR = "one standard error to each side"
_MOST_MEASURES = 6
"""Measures of groups with a picture."""


def promises(release: Release) -> list[str]:
    """See `Answers.promises`."""
    promised, bounds = promises_of(Promises, release), release.get("contributions")
    records, groups = counted(release) if bounds is None else Counted(kept=True), _grouped(release)
    whose = " of each group" if promised.found_from is None else " of any one group"
    each, sentences = whose if groups else "", []
    of_counts, of_values, quantile = "the truth", "the truth", "the true quantile"
    all_of_them = f"all {records.promised}"
    if bounds is not None:
        of_counts = of_values = quantile = "that of the rows that contributions keeps"
        all_of_them = "all rows that contributions keeps"
    elif records.kept:  # how many units there are does not depend on which rows are kept
        of_values = quantile = "that of the kept rows"
    means = ", and means of units," if release["privacy"].get("keep") == "mean" else ""
    sums = ", and these and sums of units" if bounds and bounds.get("clamp") == "unit" else " and"
    moved = f", with values{means} rounded to the step{sums} moved to the bounds"
    if promised.count_error is not None:
        within = f"{promised.count_error:,} of {of_counts}"
        sentences.append(f"The number of {records.many}{each} is within {within}.")
    if promised.units_error is not None:
        sentences.append(f"The number of units{each} is within {promised.units_error:,} of {of_counts}.")
    rows, above = f"the released number of {records.many}", ", if that is above 0"
    if release["privacy"]["neighbors"] == "replace_one" and not groups and bounds is None:
        rows, above = f"the number of {records.many}, which is public", ""
    elif promised.count_error is None and (records.many != "units" or promised.units_error is None):
        rows = f"the noisy number of {records.many}, which is not released"
    columns = zip(*(domain_of(release)[key] for key in ("columns", "lower", "upper")), strict=True)
    for axis, (column, low, high) in enumerate(columns):
        if promised.sum_error is not None:
            most = promised.sum_error * max(abs(low), abs(high))
            sentences.append(
                f"The sum of {column}{each} is within {number(most)}{after(column)} of {of_values}{moved}."
            )
        if promised.mean_error is not None:
            most = length_of(release, promised.mean_error * (high - low) / 2, axis)
            sentences.append(
                f"The mean of {column}{each} differs from {of_values}{moved}, by at most {number(most)} "
                f"divided by {rows}{above}."
            )
    if promised.rank_error is not None:
        sentences.append(
            f"Each quantile{each} is within {promised.rank_error:,} {records.promised} of its rank, and its "
            f"interval holds {quantile}."
        )
    if promised.extreme_error is not None:
        sentences.append(
            f"Each minimum or maximum{each} is within {promised.extreme_error:,} {records.promised} of the "
            f"end of {all_of_them}{' in it' if groups else ''}."
        )
    if promised.found_from is not None:
        many, kept = f"at least {promised.found_from:,} {_units(release)}", records.kept
        sentences.append(f"A group {f'in which {many} keep rows' if kept else f'with {many}'} is released.")
    return sentences


def unpromised(release: Release) -> str | None:
    """See `Answers.unpromised`."""
    if "variance" not in release["params"]["measures"]:
        return None
    return "The error of a variance is not promised; the release states its standard error."


def answer(release: Release, rows: Rows) -> Answer:
    """See `Answers.answer`."""
    result, records = result_of(Result, release), _records(release)
    if result is None:
        kept = counted(release).kept
        few = "In no group do enough units keep rows" if kept else f"No group has enough {_units(release)}"
        return nothing_found(
            "group",
            f"{few} for its key to be released. A key that is null, or "
            "cannot be read as the type of its column, makes no group.",
            advice=(
                ("Fewer, larger groups.", "A day instead of an hour, or fewer key columns."),
                ("Public keys.", "If the keys are known without the data, list them: all are released then."),
                ("A larger epsilon.", "Twice the budget halves the noise, but weakens the guarantee."),
            ),
        )
    columns, measures = domain_of(release)["columns"], release["params"]["measures"]
    if result.groups is not None:
        named = in_table(names_of(measures), len(columns))
        promised = promises_of(Promises, release)
        ranks = promised.rank_error is not None or promised.extreme_error is not None
        return Answer(
            headline=f"{listed(measures).capitalize()} of {result.groups:,} groups{records.by}",
            lead=_LEAD + (_OF_RANKS if ranks else ""),
            facts=(Fact("groups", (f"{result.groups:,}",), _where(release, rows, records.many), said=True),),
            figures=() if rows is None else _of_groups(release, rows, named, records.many),
            tables=() if rows is None else (_largest(release, rows, named),),
        )
    first = result.values[0]
    facts = tuple(
        Fact(
            _name(value, columns),
            (_shown(value, records.many, release),),
            _off(value, records.promised, _column(value, columns)),
            said=value is first,
        )
        for value in result.values
    )
    return Answer(
        headline=f"The {_name(first, columns)} is {_shown(first, records.many, release)}{records.by}",
        lead="Each number has noise; its standard error is given.",
        facts=facts,
        figures=_of_all(release, result.values, records.many),
    )


def _records(release: Release) -> Counted:
    """Return what is counted: rows also with a unit, where its rows remain several records."""
    return counted(release) if release.get("contributions") is None else Counted("kept row")


def _units(release: Release) -> str:
    """Return of what a group must have many for its key to be released."""
    return "units" if release["privacy"]["unit"] is not None else "rows"


def _grouped(release: Release) -> bool:
    return release.get("group_by") is not None


def _of_rank(measure: str) -> bool:
    return measure.startswith(("quantile", "minimum", "maximum"))


def _column(value: Value, columns: list[str]) -> str | None:
    return None if value.column is None else columns[value.column]


def _says_nothing(measure: str, error: float | None, axis: int | None, release: Release) -> bool:
    """Return whether the standard error of a mean exceeds the axis of its column, on which it must be."""
    if not measure.startswith("mean") or axis is None or error is None:
        return False
    return bool(_exceeds(error, axis, release))


def _exceeds(error: Any, axis: int, release: Release) -> Any:
    """Return whether an error, or each of several, is longer than an axis."""
    domain = domain_of(release)
    return error > domain["upper"][axis] - domain["lower"][axis]


def _name(value: Value, columns: list[str]) -> str:
    if value.column is None:
        return "number of units" if value.measure == "units" else "count"
    return f"{value.measure.replace('_', ' ')} of {columns[value.column]}"


def _shown(value: Value, many: str, release: Release) -> str:
    if value.value is None:
        return f"not known, since the noisy number of {many} is not above 0"
    if _says_nothing(value.measure, value.error, value.column, release):
        return "not known, since its standard error exceeds its axis"
    if value.column is None:
        return f"{value.value:,.0f} {'units' if value.measure == 'units' else many}"
    step = domain_of(release)["step"]
    squared = f" squared steps of {step}" if value.measure == "variance" and isinstance(step, Span) else ""
    unit = _unit(value.measure, _column(value, domain_of(release)["columns"]))
    return f"{beside(value.value, None if _of_rank(value.measure) else value.error)}{squared}{unit}"


def _unit(measure: str, column: str | None) -> str:
    """Return what follows a sum or a variance; other measures of a column show their unit themselves."""
    return after(column, "²" if measure == "variance" else "") if measure in ("sum", "variance") else ""


def _off(value: Value, many: str, column: str | None) -> str:
    if value.error is None:
        return ""
    if not _of_rank(value.measure):
        return f"standard error {number(value.error, 3)}{_unit(value.measure, column)}"
    rank = f"standard error of its rank {number(value.error, 3)} {many}"
    if value.low is None or value.high is None:
        return rank
    return f"from {number(value.low, 6)} to {number(value.high, 6)}; {rank}"


def _where(release: Release, rows: Rows, many: str) -> str:
    """Return where the groups are, and what to look at where noise may hide all that is in them."""
    place = f"in {place_of_table(release)}"
    name = next((name for name in ("count", "units") if name in release["params"]["measures"]), None)
    if rows is None or name is None or release["group_by"]["public_keys"] is None:
        return place
    if (rows[name] > hidden(release["result"]["groups"]) * rows[f"{name}_error"]).any():
        return place
    none = f"none has more {'units' if name == 'units' else many} than noise may hide"
    return f"{place}; {none}: see whether the keys are written as in the files"


def _largest(release: Release, rows: Any, named: list[str]) -> Table:
    """Return the groups that are shown; see `_order`."""
    groups, order = release["group_by"], _order(release, rows, named)
    shown = [(row_key(groups, rows, i), *(_cell(release, rows, name, i) for name in named)) for i in order]
    many = f"{len(shown)} groups" if len(shown) != 1 else "group"
    title = f"The {many} with the largest {named[0]}; all groups are in {place_of_table(release)}"
    if _by_key(release, rows) is not None:
        title = f"The {many} by {key_names(groups)[0]}; stored in {place_of_table(release)}"
    return Table(title, (", ".join(key_names(groups)), *named), shown)


def _order(release: Release, rows: Any, named: list[str]) -> NDArray[np.int64]:
    """Return the groups by their key, or those with the largest first measure, not known ones last."""
    by_key = _by_key(release, rows)
    if by_key is not None:
        return by_key
    values = np.array(steps_of(release, rows[named[0]], _axis(release, named[0])), dtype=np.float64)
    values[_unknown(release, rows, named[0])] = -math.inf
    return np.argsort(-values, kind="stable")[:_SHOWN]


def _by_key(release: Release, rows: Any) -> NDArray[np.int64] | None:
    """Return the order of all groups by their only key, a time or a number, unless they are many."""
    keys, *others = (rows[name] for name in release["group_by"]["columns"])
    if others or len(keys) > _IN_ORDER or release.get("table"):
        return None
    dates = all(_DATE.fullmatch(str(key)) for key in keys)
    return np.argsort(keys, kind="stable") if dates or keys.dtype.kind in "iuM" else None


def _unknown(release: Release, rows: Any, name: str) -> NDArray[np.bool_]:
    """Return of which groups a measure is not known.

    They have no records by the noisy number of these, or an interval as wide as the domain, or a standard
    error of a mean that exceeds its axis.
    """
    at, domain = _axis(release, name), domain_of(release)
    unknown: NDArray[np.bool_] = np.isnan(steps_of(release, rows[name], at))
    if f"{name}_low" in rows:
        low, high = (steps_of(release, rows[f"{name}_{end}"], at) for end in ("low", "high"))
        unknown |= (low <= domain["lower"][at]) & (high >= domain["upper"][at])
    elif name.startswith("mean"):
        unknown |= _exceeds(_errors(release, rows, name), at, release)
    return unknown


def _of_all(release: Release, values: Sequence[Value], many: str) -> tuple[Figure, ...]:
    """Return a picture of the measures of all records, each on its own axis."""
    columns, parts, ranks = domain_of(release)["columns"], [], False
    for each in values:
        if each.value is not None and not _says_nothing(each.measure, each.error, each.column, release):
            row = Row("", each.value, each.low, each.high)
            if not _of_rank(each.measure):
                row = Row.within("", each.value, each.error)
            ranks = ranks or _of_rank(each.measure)
            column = _column(each, columns)
            parts.append(Strip(_axis_of(each.measure, column, many, row.shown), [row]))
    true = truth(release, "the true quantile")
    interval = f"± standard error, or where {true} is" if ranks else _STANDARD_ERROR
    drawn = strips("The measures", parts[:MOST_STRIPS], "the released value", interval)
    return (Figure(drawn, "The measures, each on its own axis"),) if parts else ()


def _of_groups(release: Release, rows: Any, named: list[str], many: str) -> tuple[Figure, ...]:
    """Return a picture of each of the first measures, of the groups in the table of the report."""
    columns, by = domain_of(release)["columns"], release["group_by"]
    order, figures, groups_in_all = _order(release, rows, named), [], len(rows[named[0]])
    rows = {key: column[order] for key, column in rows.items()}  # of all groups that would take much memory
    for name in named[:_MOST_MEASURES]:
        at, ranks = _axis(release, name), _of_rank(name)
        values, lows, highs = _with_ends(release, rows, name, at)
        known = np.flatnonzero(~_unknown(release, rows, name)).tolist()
        groups = short([row_key(by, rows, i) for i in known])
        shown = [
            Row(group, *(_known(each[i]) for each in (values, lows, highs)))
            for group, i in zip(groups, known, strict=True)
        ]
        if not shown:
            continue
        measure = name.removesuffix(f"_{at}") if len(columns) > 1 else name
        column = None if measure in ("count", "units") else columns[at]
        axis = _axis_of(measure, column, many, [value for row in shown for value in row.shown])
        interval = f"where {true_one(release)} is" if ranks else _STANDARD_ERROR
        strip = Strip(axis, shown, ", ".join(key_names(by)))
        drawn = strips(axis.title, [strip], "the released value", interval)
        some = f", of the groups with the largest {named[0]}" if groups_in_all > len(order) else ""
        figures.append(Figure(drawn, f"{axis.title}{some}"))
    return tuple(figures)


def _with_ends(release: Release, rows: Any, name: str, axis: int) -> tuple[NDArray[Any], ...]:
    """Return a measure of all groups, and the ends of its intervals, as positions; NaN for none."""
    values = steps_of(release, rows[name], axis)
    if f"{name}_low" in rows:
        low, high = (steps_of(release, rows[f"{name}_{end}"], axis) for end in ("low", "high"))
        return values, low, high
    off = _errors(release, rows, name)
    return values, values - off, values + off


def _errors(release: Release, rows: Any, name: str) -> NDArray[Any]:
    """Return the standard errors of a measure of all groups, as lengths; NaN for those of ranks."""
    off: NDArray[Any] = rows[f"{name}_error"] * (math.nan if _of_rank(name) else 1.0)
    times = times_of(release["domain"])
    if rows[name].dtype.kind == "M" and times is not None:
        off = off / times.amount  # it is in the unit in which the step is written
    return off


def _known(value: Any) -> Any:
    return float(value) if value == value else None


def _axis_of(measure: str, column: str | None, many: str, shown: Iterable[float]) -> Axis:
    """Return the axis of a measure. It shows dates where the measure is one."""
    if column is None:
        return Axis.around(f"number of {'units' if measure == 'units' else many}", shown, whole=True)
    of = measure.replace("_", " ")
    if not isinstance(column, TimeColumn) or measure in ("sum", "variance"):
        return Axis.around(f"{of} of {titled(column, '²' if measure == 'variance' else '')}", shown)
    axis = Axis.around(column, shown)
    return replace(axis, title=f"{of} of {axis.title}")


def _axis(release: Release, name: str) -> int:
    """Return the number of the column of a measure by its name in the table."""
    number_of = name.rpartition("_")[2]
    return int(number_of) if len(release["domain"]["columns"]) > 1 and number_of.isdecimal() else 0


def _cell(release: Release, rows: Any, name: str, i: Any) -> str:
    """Return a measure of a group with its error, or with the interval of a quantile."""
    at = _axis(release, name)
    column = domain_of(release)["columns"][at]
    unit = "" if name in ("count", "units") else after(column, "²" if name.startswith("variance") else "")

    def text(value: Any, error: float | None = None) -> str:
        return plain(value) if isinstance(value, np.datetime64) else f"{beside(float(value), error)}{unit}"

    group = {key: column[i : i + 1] for key, column in rows.items() if key.startswith(name)}
    if _unknown(release, group, name)[0]:
        return "not known"
    value = text(rows[name][i], None if _of_rank(name) else float(rows[f"{name}_error"][i]))
    if f"{name}_low" in rows:
        low, high = (text(rows[f"{name}_{end}"][i]) for end in ("low", "high"))
        return f"{value}, from {low} to {high}"
    off, dated = float(rows[f"{name}_error"][i]), isinstance(rows[name][i], np.datetime64)
    times = times_of(release["domain"]) if dated and not _of_rank(name) else None
    error = number(off, 3) if times is None else f"{number(off, 3)} {times.unit}s"
    return f"{value}, off by {error} in rank" if _of_rank(name) else f"{value} ± {error}{unit}"
