"""Summarize a release for a terminal."""

from collections.abc import Mapping
from typing import Any

from pipelines.answers.answer import Answer, Fact, Rows, Table
from pipelines.answers.checks import check_facts, kept_facts
from pipelines.answers.text import confidence, counted, number, spent_delta
from pipelines.console.printable import printable
from pipelines.grouped_release import answers_by_group
from pipelines.job.questions import QUESTIONS
from pipelines.joint_release import answers_of, read_answer_rows
from pipelines.release import read_rows
from pipelines.storage.folder import Folder
from pipelines.tasks import TASKS

_MOST_GROUPS = 30
"""Groups that a terminal shows."""

_MOST_ROWS = 12
"""Rows of a table that a terminal shows."""

_WIDEST = 60
"""Most characters of a cell or of the name of a group; keys may be longer."""


def summary_of(folder: Folder, release: Mapping[str, Any]) -> list[str]:
    """Return the lines of the summary of a release, with a heading for each of several questions.

    Args:
        folder: of the release and its tables.
        release: a value as in release.json.

    Raises:
        JobError: a table is not as the run wrote it.
    """
    if "groups" in release:
        return _of_groups(release)
    if release["task"] != QUESTIONS:
        # A table in parts may be many files, which the report has read already: they are not read again.
        return _of_one(release, None if release.get("table") else read_rows(folder, release))
    lines, tables = [], read_answer_rows(folder, release)
    for name, one in answers_of(release).items():
        own = _of_groups(one) if "groups" in one else _of_one(one, tables[name])
        lines += [f"{name}:", *(f"  {line}".rstrip() for line in own), ""]
    privacy = release["privacy"]
    return [
        *lines,
        f"All questions together spent {spent(privacy)}.",
    ]


def _of_one(release: Mapping[str, Any], rows: Rows) -> list[str]:
    return summary(release, TASKS[release["task"]].answers.answer(release, rows))


def _of_groups(release: Mapping[str, Any]) -> list[str]:
    """Return a line for each of the first groups."""
    answers, privacy = TASKS[release["task"]].answers, release["privacy"]
    groups = answers_by_group(release, None)
    lines = [f"{cut(name)}: {answers.answer(one, None).brief}" for name, one, _ in groups[:_MOST_GROUPS]]
    more = len(groups) - len(lines)
    return [
        *lines,
        *([f"... and {more:,} more group{'s' if more > 1 else ''}"] if more else []),
        *_promised(groups[0][1]),
        "",
        *map(_said, kept_facts(release)),
        f"All groups together spent {spent(privacy)}.",
    ]


def _said(fact: Fact) -> str:
    """Return a fact as a sentence."""
    note = f" ({fact.note})" if fact.note else ""
    return f"{fact.name.capitalize()}: {', '.join(fact.lines)}{note}."


def summary(release: Mapping[str, Any], answer: Answer) -> list[str]:
    """Return the lines of the summary."""
    if release["result"] is None:
        lines = [f"{answer.headline}. This outcome is protected like any other and uses the same budget."]
        found: tuple[Fact, ...] = ()
    else:
        lines, found = [], answer.facts
    facts = (*found, *kept_facts(release), *check_facts(release), Fact("spent", (spent(release["privacy"]),)))
    width = max(len(fact.name) for fact in facts) + 2
    lines += [
        f"{fact.name:<{width}}{', '.join(fact.lines)}{f' ({fact.note})' if fact.note else ''}"
        for fact in facts
    ]
    for table in answer.tables:
        shown = table_lines(table)
        lines += [
            "",
            *shown,
            *(["± is one standard error of the noise."] if any("±" in line for line in shown) else []),
        ]
    return [*lines, *_promised(release)]


def spent(privacy: Mapping[str, Any]) -> str:
    """Return what was spent, and what it hides: one row, one record, or all rows of one unit."""
    epsilon, delta, unit = number(privacy["epsilon"]), number(spent_delta(privacy)), privacy.get("unit")
    one = counted({"privacy": privacy}).one
    whose = f"no privacy unit: each {one} counts as one person" if unit is None else f"all rows of one {unit}"
    return f"epsilon {epsilon}, delta {delta}, {privacy['neighbors']} {one} ({whose})"


def _promised(release: Mapping[str, Any]) -> list[str]:
    """Return what was promised of an answer, since not every number has an error of its own beside it."""
    answers = TASKS[release["task"]].answers
    promises, unpromised = answers.promises(release), answers.unpromised(release)
    whose = " of any one group" if "each_group" in release else ""
    return [
        "",
        *([f"Promised{whose}, with probability {confidence(release)} or more:"] if promises else []),
        *(f"  • {sentence}" for sentence in promises),
        *([unpromised] if unpromised else []),
    ]


def table_lines(table: Table, most: int | None = _MOST_ROWS, widest: int | None = _WIDEST) -> list[str]:
    """Return the first rows of a table as aligned lines.

    Args:
        table: the table.
        most: how many rows; None for all.
        widest: how many characters of a cell; None for all.
    """
    from rich.cells import cell_len  # the width on a terminal: wide characters take two columns

    shown = [[cut(printable(cell), widest) for cell in row] for row in (table.headers, *table.rows[:most])]
    widths = [max(cell_len(row[i]) for row in shown) + 2 for i in range(len(table.headers))]
    rows = [
        "".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in shown
    ]
    more = 0 if most is None else len(table.rows) - most
    return [
        f"{table.title}:",
        *(row.rstrip() for row in rows),
        *([f"... and {more:,} more"] if more > 0 else []),
    ]


def cut(text: str, widest: int | None = _WIDEST) -> str:
    """Return the first characters of a text, with an ellipsis where more follow; all of it for None."""
    return text if widest is None or len(text) <= widest else f"{text[: widest - 3]}..."
