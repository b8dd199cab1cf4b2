"""Facts about the input: what a unit has in the answer, how much was left out, and how much was moved."""

import math

from pipelines.answers.answer import Fact, Release
from pipelines.answers.text import counted, number, number_of

_STANDS_OUT = 2.0
"""Standard errors above which a count stands out of its noise: 3% of the counts of nothing do."""

_LEFT_OUT = "what this leaves out is in no ± and in no promise, so counts and sums may be far too low"


def check_facts(release: Release) -> tuple[Fact, ...]:
    """Return the counts of a release for each column; nothing where the job did not ask for them."""
    checks, many = release.get("checks"), counted(release).many
    if checks is None:
        return ()
    error = checks["standard_error"]
    moved = "a value outside of the bounds of the column, moved to the nearest one"
    if _counts_rows(release):
        moved = "a number of rows outside of the bounds, moved to the nearest one"
    return tuple(
        Fact(
            name, *_told(release, checks[key], error, many, name, f"{why}; standard error {number(error, 3)}")
        )
        for name, key, why in (
            ("left out", "left_out", "a null, NaN or infinity in the column"),
            ("moved", "moved", moved),
        )
    )


def _counts_rows(release: Release) -> bool:
    """Return whether the record of a unit is the number of its rows."""
    return bool(release["privacy"].get("keep") == "count")


def kept_facts(release: Release) -> tuple[Fact, ...]:
    """Return what a unit has in the answer. What contributions leave out is in none of its errors."""
    if release["privacy"].get("unit") is None:
        return ()
    bounds = release.get("contributions")
    if bounds is None:
        by = counted(release).by.removeprefix(", by ")
        return (Fact("kept", (by,)),) if by else ()  # a function gets all rows of a unit
    rows = number_of(bounds["rows"], "row") if "rows" in bounds else "all rows"
    most = f"at most {rows}"
    if release.get("group_by") is not None:
        most = f"at most {number_of(bounds['groups'], 'group')}, {rows} in each"
    return (Fact("kept", (f"of each unit {most}",), _LEFT_OUT),)


def _stands_out(columns: int) -> float:
    """Return the standard errors above which a count of one of some columns stands out of its noise.

    Of the counts of nothing in all columns, one or more does in at most 3% of the runs: the tail of Laplace
    noise is e times as small after each 1 / sqrt(2) standard errors.
    """
    return _STANDS_OUT + math.log(columns) / math.sqrt(2)


def hidden(counts: int) -> float:
    """Return the standard errors up to which noise may hide each of some counts.

    Of nothing in all of them, one or more is so large in far fewer than 3% of the runs. Of so many rows,
    3% of the counts do not stand out.
    """
    return _stands_out(counts) + _STANDS_OUT


def _told(
    release: Release, counts: list[int], error: float, many: str, what: str, why: str
) -> tuple[tuple[str, ...], str]:
    """Return a line for each column whose count stands out of the noise, or one where none does; and why.

    The one line is no all-clear: it says how many rows the noise may hide. Of units, a row is left out or
    moved, and no unit.
    """
    columns, whose = release["domain"]["columns"], f" have a row {what}" if many == "units" else ""
    least = _stands_out(len(columns)) * error
    most = least + _STANDS_OUT * error
    such = bool(whose)
    if what == "moved" and _counts_rows(release):
        whose, such = " have a number of rows that is moved", False
    lines = tuple(
        f"{column}: about {count:,} {many}{whose}{'' if count > most else ', or noise'}"
        for column, count in zip(columns, counts, strict=True)
        if count > least
    )
    if lines:
        return lines, why
    hidden = f"up to about {number(most, 2)} {many} of a column, or all where there are fewer"
    return ("none stand out",), f"noise may hide {hidden}; {f'with such a row: {why}' if such else why}"
