"""The report of a release in a folder, of one question, of several or of groups."""

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pipelines.console.printable import CONTROL, printable
from pipelines.errors import JobError
from pipelines.grouped_release import answers_by_group
from pipelines.job.questions import QUESTIONS
from pipelines.joint_release import answers_of, read_answer_rows
from pipelines.release import read_rows
from pipelines.report.report import render, render_groups, render_questions
from pipelines.storage.folder import Folder
from pipelines.storage.locate import absolute, open_file

_DOCTYPE = b"<!doctype html>"


def report_page(folder: Folder, release: Mapping[str, Any]) -> bytes:
    """Return the report of a release and of the tables in its folder, as an HTML file.

    Raises:
        JobError: a table is not as the run wrote it.
    """
    return as_page(_page(folder, release))


def as_page(text: str) -> bytes:
    """Return a rendered page as an HTML file, without control characters."""
    return CONTROL.sub(_escaped, text).encode()


def page_at(place: str) -> Callable[[bytes], None]:
    """Return what writes the page that the option --html asks for, also over an earlier one.

    Raises:
        JobError: the place is a folder, or a file that is not a page.
    """
    if not place:
        raise JobError("--html is empty: give the name of a file.")
    if os.path.isdir(place):
        raise JobError(f"--html {place} is a folder: give the name of a file.")
    folder, name = open_file(absolute(place))
    if not (folder.read(name) or _DOCTYPE).startswith(_DOCTYPE):
        raise JobError(f"--html {place} exists, but it is not a page: give another name.")
    return partial(folder.replace, name)


def _page(folder: Folder, release: Mapping[str, Any]) -> str:
    if release["task"] == QUESTIONS:
        return render_questions(release, answers_of(release), read_answer_rows(folder, release))
    if "groups" in release:
        return render_groups(release, answers_by_group(release, read_rows(folder, release)))
    return render(release, read_rows(folder, release))


def _escaped(found: re.Match[str]) -> str:
    """Return an escape of a control character in a page: text from outside must not change its direction."""
    return found[0] if found[0] == "\n" else str(printable(found[0]))
