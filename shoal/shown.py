"""A plan and a release as Python has them: values, Arrow tables, and pages for a notebook."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self

import pyarrow as pa

from core.errors import ShoalError
from pipelines.console.printable import finite, printable, terminal
from pipelines.grouped_release import answers_by_group
from pipelines.job.questions import QUESTIONS
from pipelines.joint_release import answers_of
from pipelines.looks import Show
from pipelines.release import RELEASE, REPORT, TABLE, as_the_run_wrote_it, stored_release
from pipelines.report.report import render, render_groups
from pipelines.report.summary import summary, summary_of
from pipelines.storage.folder import Folder
from pipelines.storage.locate import absolute, open_folder
from pipelines.table import columns_of, open_table, read_listed, stacked
from pipelines.tasks import TASKS

__all__ = ["Plan", "Release", "ShoalError"]


@dataclass(frozen=True, repr=False)
class Plan:
    """What a run would do and promise. It is printed as `shoal plan` prints it.

    Args:
        values: all of it, as `shoal plan --json` has it.
        refusals: why a run could not start here, one sentence each; empty where it could.
        text: what is printed.
    """

    values: Mapping[str, Any]
    refusals: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, described: Mapping[str, Any], show: Show, refusals: Sequence[str], stored: bool) -> Self:
        """Return a plan that was described; `stored` is whether its job says where the release goes."""
        lines = _printed(described, show)
        kept = [line for line in lines if stored or not line.startswith("Release: ")]
        told = [f"A run here would be refused. {refusal}" for refusal in refusals]
        return cls(finite(described), tuple(refusals), "\n".join([*kept, *told]))

    @property
    def error(self) -> dict[str, Any]:
        """What is promised about errors; see `Release.error`."""
        return _promised(self.values, QUESTIONS)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


@dataclass(frozen=True, repr=False)
class Shown:
    """Values that are printed as the command prints them.

    Args:
        values: all of it, as the command prints it with `--json`.
        text: what is printed.
        page: what a notebook shows, one HTML page; None for the text.
    """

    values: Mapping[str, Any]
    text: str
    page: str | None = None

    @classmethod
    def of(cls, described: Mapping[str, Any], show: Show, page: str | None = None) -> Self:
        """Return values that were described."""
        return cls(finite(described), "\n".join(_printed(described, show)), page)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>" if self.page is None else _frame(self.page)


@dataclass(frozen=True, repr=False)
class Release:
    """What a run released. A notebook shows its report, and it is printed as `shoal run` prints it.

    Args:
        values: all of it, as in release.json.
        table: the table of the answer; None where the answer is no table, or nothing was found.
        answers: of several questions, or of a task that is asked about each group by itself, each answer as
            a release of its own, by the name of the question or the key of the group. That of a question
            about each group has answers, too.
    """

    values: Mapping[str, Any]
    table: pa.Table | None = None
    answers: Mapping[str, "Release"] = field(default_factory=dict)
    _text: str | None = None
    _page: str | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Return a release that a run stored, with all of its tables.

        Args:
            path: the folder of the release, or its release.json, local or a URL.

        Raises:
            ShoalError: there is none, or it was changed after its run.
        """
        folder = open_folder(absolute(os.fspath(path)).removesuffix(f"/{RELEASE}"))
        with as_the_run_wrote_it(folder.locate(RELEASE)):
            return cls.stored(folder, stored_release(folder))

    @classmethod
    def stored(cls, folder: Folder, values: Mapping[str, Any]) -> Self:
        """Return the release in a folder, with all of its tables in memory."""
        text, page = summary_of(folder, values), (folder.read(REPORT) or b"").decode()
        if values["task"] != QUESTIONS:
            table = _listed(folder, values) if values.get("table") else _whole(folder)
            return cls(values, table, _by_group(values, table), _escaped(text), page)
        answers = {}
        for name, answer in answers_of(values).items():
            table = _listed(folder, values["answers"][name])
            own = _escaped(summary_of(folder, answer)) if "groups" in answer else None
            answers[name] = cls(answer, table, _by_group(answer, table), own)
        return cls(values, None, answers, _escaped(text), page)

    @property
    def result(self) -> Any:
        """The answer as plain values: a mapping, or None where nothing was found, or there are `answers`."""
        return self.values.get("result")

    @property
    def found(self) -> bool:
        """Whether something was found."""
        return bool(self.values["outcome"] == "released")

    @property
    def error(self) -> dict[str, Any]:
        """What is promised about errors: figures by name, which all hold with probability 1 - `failure`.

        They hold on all data; errors that `result` has are of what was found. Of several questions, there is
        one such mapping for each.
        """
        return _promised(self.values, "answers")

    @property
    def report(self) -> str:
        """The report, one HTML page."""
        if self._page is not None:
            return self._page
        if "groups" in self.values:
            return render_groups(self.values, answers_by_group(self.values, self._rows))
        return render(self.values, self._rows)

    @property
    def _rows(self) -> Any:
        table = self.table
        return None if table is None else columns_of(table)

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        answer = TASKS[self.values["task"]].answers.answer(self.values, self._rows)
        return _escaped(summary(self.values, answer))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _frame(self.report)


def _frame(page: str) -> str:
    """Return a page as a notebook shows it."""
    return f'<iframe srcdoc="{escape(page)}" sandbox style="width: 100%; height: 40em; border: 0"></iframe>'


def _printed(described: Mapping[str, Any], show: Show) -> list[str]:
    console = terminal(False)
    with console.capture() as captured:
        show(printable(described), console)
    return [line.rstrip() for line in captured.get().splitlines()]


def _whole(folder: Folder) -> pa.Table | None:
    """Return the table of a release that is one file, or None without that file."""
    stored = folder.read(TABLE)
    return None if stored is None else _plain(open_table(stored).read())


def _by_group(values: Mapping[str, Any], table: pa.Table | None) -> dict[str, Release]:
    """Return the answer of each group as a release, by the name of the group; none without groups."""
    if "groups" not in values:
        return {}
    columns: Any = None if table is None else dict(zip(table.column_names, table.columns, strict=True))
    return {
        name: Release(answer, None if own is None else pa.table(dict(own)))
        for name, answer, own in answers_by_group(values, columns)
    }


def _listed(folder: Folder, values: Mapping[str, Any]) -> pa.Table | None:
    """Return the table whose files a release lists, or None where it lists none."""
    parts = values.get("table")
    return _plain(stacked(read_listed(folder, part) for part in parts)) if parts else None


def _plain(table: pa.Table) -> pa.Table | None:
    """Return a table without metadata, which repeat the release; None for a table without columns."""
    return table.replace_schema_metadata(None) if table.column_names else None


def _promised(values: Mapping[str, Any], several: str) -> dict[str, Any]:
    if values["task"] == QUESTIONS:
        return {name: _promised(answer, several) for name, answer in values[several].items()}
    accuracy = values["accuracy"]
    return {"failure": accuracy["failure"], **accuracy["promises"]}


def _escaped(lines: Sequence[str]) -> str:
    return "\n".join(map(printable, lines))
