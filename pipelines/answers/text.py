"""Numbers and common phrases of answers."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.answers.answer import Answer, Fact, Release, domain_of
from pipelines.console.printable import printable
from pipelines.each_row import counts_alone
from pipelines.quantities import Amount, Quantity, decimal, significant
from transforms.key_labels import UNITS as TIMES

NEIGHBORS = {
    "add_or_remove_one": "one row more or one row less; the number of rows is private",
    "replace_one": "one row replaced by another; the number of rows is public",
}
SECRET_PAIRS = (
    "one row replaced by another that forms a secret pair with it under the policy; other changes may be "
    "distinguishable"
)
"""What a policy hides, where the noise needs the policy."""

SECRET_PAIRS_OF_ALL = (
    "one row replaced by another that in every question has an equal value or forms a secret pair with it "
    "under the policy; other changes may be distinguishable"
)
"""What a policy hides in a job of several questions, where the noise of one of them needs the policy."""

DENSE = "Where few {many} share a value and values have no large gaps"
"""When the typical error of a rank holds."""

UNITS = (
    "How far off a value may be in the units of the column depends on how close to one another the values of "
    "the data lie there. So it is not promised before the run; a released interval says it afterwards."
)
"""What is not promised where ranks are."""

ROUNDED = (
    "Values are rounded to the step of the domain before they are counted, so those near an edge may count "
    "on its other side."
)
"""What counts of ranges and cells are of."""

_BY = {
    "one": ", by one random row of each unit",
    "last": ", by the last row of each unit",
    "mean": ", by the mean of each unit's rows",
    "min": ", by the smallest value of each unit's rows",
    "max": ", by the largest value of each unit's rows",
    "sum": ", by the sum of each unit's rows",
    "count": ", by the number of each unit's rows",
}


@dataclass(frozen=True)
class Counted:
    """What the counts of a plan or a release count, in words.

    Args:
        one: the noun for one record.
        by: how the rows of a unit became its record, as an addition to a headline; empty without a unit.
        kept: whether these are rows that units keep, beside others that they may have.
    """

    one: str = "row"
    by: str = ""
    kept: bool = False

    @property
    def many(self) -> str:
        """The plural of the noun."""
        return f"{self.one}s"

    @property
    def promised(self) -> str:
        """What promises count, in the plural: a unit may have kept no row of those that it has somewhere."""
        return "kept rows" if self.kept else self.many

    def read(self, text: str) -> str:
        """Return a text of core, which calls a record a row, with the nouns for one record and for many."""
        return re.sub(r"\brows?\b", lambda found: self.one if found[0] == "row" else self.promised, text)


def spent_delta(privacy: Mapping[str, Any]) -> float:
    """Return the delta that a release spent; releases of earlier versions say only what it could spend."""
    return float(privacy.get("spent_delta", privacy["delta"]))


def counted(release: Mapping[str, Any]) -> Counted:
    """Return what a plan or a release counts: rows, with a unit its records, or the records that rows are."""
    privacy = release.get("privacy", {})
    if privacy.get("unit") is not None:
        by = "" if _counts_alone(release) else _BY.get(privacy.get("keep"), "")
        bounds = release.get("contributions")
        if bounds is not None and "rows" in bounds:  # a function gets all rows of a unit in a group
            by = ", by the rows that units keep"
        last = privacy.get("keep") == "last" and not _counts_alone(release)
        return Counted("unit", by, last or kept_rows(release))
    return Counted() if privacy.get("count") is None else Counted("record")


def _counts_alone(release: Mapping[str, Any]) -> bool:
    rows, domain = release.get("rows") or {}, release.get("domain") or {}
    return counts_alone(domain.get("columns"), rows.get("derive"))


def kept_rows(release: Mapping[str, Any]) -> bool:
    """Say whether the records of a unit are random rows of it, which every run draws anew."""
    privacy = release.get("privacy", {})
    one = privacy.get("unit") is not None and privacy.get("keep") == "one" and not _counts_alone(release)
    return one or release.get("contributions") is not None


def truth(release: Mapping[str, Any], word: str = "the truth") -> str:
    """Return what errors are measured from: the truth, or that of the rows that units keep."""
    return "that of the kept rows" if counted(release).kept else word


def if_all(release: Release, low: Any, high: Any, axis: int = 0) -> str:
    """Return what follows an interval of a column, in data units: that it says nothing, where it does not."""
    whole = the_domain(release, low, high, axis)
    return whole and f"{whole}, as is usual where there are no {counted(release).promised}"


def the_domain(release: Release, low: Any, high: Any, axis: int = 0) -> str:
    """Return what follows the ends of an interval, in data units, where they are those of the domain."""
    domain = domain_of(release)
    ends = domain["lower"][axis], domain["upper"][axis]
    return ", the whole domain" if (low, high) == ends else ""


def true_one(release: Mapping[str, Any]) -> str:
    """Return `truth` as the subject of a sentence about a value."""
    return truth(release, "the true one")


def hides(neighbors: str, unit: str | None, count: str | None = None) -> str:
    """Return a phrase for what a neighbor relation hides of rows, of units if there are any, or of records.

    Args:
        neighbors: name of the relation.
        unit: column of the privacy unit.
        count: column of how many records a row is.
    """
    if count is not None:
        hidden = Counted("record").read(NEIGHBORS[neighbors])
        return (
            f"{hidden}; a row is as many records as {count} says, of which one is hidden, not the whole row"
        )
    return Counted("row" if unit is None else "unit").read(NEIGHBORS[neighbors])


def place_of_table(release: Mapping[str, Any]) -> str:
    """Return where the rows of a release's table are, in words."""
    if release.get("table") is not None:
        return "the folder result"
    return str(release.get("file", "result.parquet"))


def key_text(values: Iterable[object]) -> str:
    """Return the values of a key of a group as a reader can tell them apart.

    A text that is empty, or that begins or ends with a space, is in quotes. Control characters are escaped.
    """
    shown = []
    for value in values:
        text = str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
        shown.append(printable(text if text and text == text.strip() else json.dumps(text)))
    return ", ".join(shown)


def key_names(groups: Mapping[str, Any]) -> list[str]:
    """Return the key columns of `group_by`, each with what its times are cut to: `day (month)`."""
    cut = groups["truncate"]
    return [f"{name} ({cut[name]})" if name in cut else str(name) for name in groups["columns"]]


def row_key(groups: Mapping[str, Any], rows: Mapping[str, Any], place: int) -> str:
    """Return the key of a row of a table as `key_text` does; a time as jobs write it, such as 2013-01.

    Args:
        groups: `group_by` of the release.
        rows: the columns of its table.
        place: of the row.
    """
    cut = groups["truncate"]
    values = ((name, rows[name][place]) for name in groups["columns"])
    return key_text(
        value.astype(f"datetime64[{TIMES[cut[name]]}]") if name in cut else value for name, value in values
    )


def number_of(many: int, one: str) -> str:
    """Return how many things there are, given what one is called: '1 row', '1,000 rows'."""
    return f"{many:,} {one}{'' if many == 1 else 's'}"


def number(value: float, digits: int = 4) -> str:
    """Return a number as `significant` does. A date is shown as it is written, a quantity with its unit."""
    return value.shown(digits) if isinstance(value, Quantity) else significant(value, digits)


def beside(value: float, error: float | None) -> str:
    """Return a number with the decimals of three digits of its error; with six digits where it has none."""
    if isinstance(value, Amount):
        return f"{beside(value.value, error)} {value.unit}"
    if isinstance(value, Quantity) or not error or not math.isfinite(error) or not abs(value) < 1e15:
        return number(value, 6)
    decimals = max(0, 2 - math.floor(math.log10(error)))
    return significant(round(value, decimals) + 0.0, 15)  # which has no -0


def on_grid(value: float, step: float) -> str:
    """Return a value in data units with as many decimals as the step has."""
    return value.on_grid() if isinstance(value, Quantity) else decimal(value, step)


def plain(value: Any) -> str:
    """Return a bound of a range, or a value of a table: a number with six digits, or a date."""
    if isinstance(value, np.datetime64):
        return str(value)
    return number(value, 6)


def span(low: Any, high: Any) -> str:
    """Return both ends of a range as `plain` does, with a unit once."""
    first = significant(low.value, 6) if isinstance(low, Amount) else plain(low)
    return f"{first} to {plain(high)}"


def in_share(ranks: int, many: str) -> str:
    """Return a sentence that relates an error of a rank to an example of a number of rows.

    The number is 10,000 wherever the error is below half of it, so that plans of two budgets can be compared.
    """
    total = 10_000
    while total < 2 * ranks:
        total *= 1_000
    return (
        f"Among {total:,} {many}, for example, at most {number(100 * ranks / total, 2)}% of them lie between "
        "the released value and the true one."
    )


def confidence(release: Mapping[str, Any]) -> str:
    """Return the probability that all promises of a plan or release hold, in percent."""
    return f"{number(100 * (1 - release['accuracy']['failure']))}%"


def nothing_found(
    what: str, lead: str = "", facts: tuple[Fact, ...] = (), advice: tuple[tuple[str, str], ...] = ()
) -> Answer:
    """Return the answer of a release without a result.

    Args:
        what: the kind of thing that was not found.
        lead: more about the reason.
        facts: see `Answer`.
        advice: see `Answer`.
    """
    protected = "This outcome is protected like any other and uses the same budget."
    return Answer(f"No {what} was found", f"{lead} {protected}".strip(), facts, advice=advice)
