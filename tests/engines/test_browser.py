"""Reports in a real browser: Chromium, at the widths of a desktop and a phone, light and dark.

Every page is quiet, loads nothing, fits the window and can be read; see `examples.browser.look`.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser

import shoal
from examples.browser import THEMES, WIDTHS, NoBrowser, Trouble, browser, look
from pipelines.choose.curves import curve_page
from pipelines.choose.sweep import parse_sweep, sweep
from pipelines.console.printable import printable
from pipelines.ledger.page import ledger_page
from pipelines.ledger.table import describe_ledger
from pipelines.report.page import as_page
from pipelines.report.report import render
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes
from tests.pipelines.ledger.test_table import ledger
from tests.pipelines.report.pictured import release_of

pytestmark = pytest.mark.engine

GROUPS = 10_000

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'`><img src=https://example.org/a.png onerror=alert(1)>",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "W" * 300,
    "\N{GRINNING FACE}" * 40,
    "two\nlines\tand\x00more",
)

NAMED = ("k_means", "quantiles", "ranges", "bounds", "statistics", "k_cover")
"""Tasks whose columns have the hostile names, one each."""


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    try:
        with browser() as found:
            yield found
    except NoBrowser as error:
        pytest.skip(str(error))


def check(started: Browser, folder: Path, page: bytes) -> str:
    """Look at a page and return its text."""
    file = folder / "page.html"
    file.write_bytes(page)
    text, seen = "", []
    for device, theme, shown in look(started, file):
        text = shown.inner_text("main")
        seen.append((device, theme))
    assert seen == [(device, theme) for device in WIDTHS for theme in THEMES]
    return text


@pytest.mark.parametrize("task", TASKS)
def test_every_report_fits_and_is_quiet(started: Browser, tmp_path: Path, task: str) -> None:
    release, rows = release_of(f"{task}-0")
    assert "Settings of the run" in check(started, tmp_path, as_page(render(release, rows)))


@pytest.mark.parametrize(("task", "name"), [*zip(NAMED, HOSTILE, strict=True)])
def test_names_may_be_hostile(started: Browser, tmp_path: Path, task: str, name: str) -> None:
    release, rows = copy.deepcopy(release_of(f"{task}-0"))
    release["domain"]["columns"] = [f"{i}{name}" for i in range(len(release["domain"]["columns"]))]
    text = check(started, tmp_path, as_page(render(release, rows)))
    assert f"0{printable(name)[:3]}" in text


def test_many_groups_with_hostile_keys_fit(started: Browser, tmp_path: Path) -> None:
    release, rows = release_of("statistics-also-0")
    assert rows is not None
    some = np.arange(GROUPS)
    columns = {name: np.resize(column, GROUPS) for name, column in rows.items()}
    columns["c"] = np.array([f"{i} {HOSTILE[i % len(HOSTILE)]}" for i in some], dtype=object)
    shown = {**release, "result": {**release["result"], "groups": GROUPS}}
    text = check(started, tmp_path, as_page(render(shown, columns)))
    assert "10,000 groups" in text
    assert any(f" {name[:6].splitlines()[0]}" in text for name in HOSTILE)  # the largest groups are shown


def test_a_ledger_of_many_charges_fits(started: Browser, tmp_path: Path) -> None:
    text = check(started, tmp_path, ledger_page(describe_ledger(ledger(1000, epsilon=0.001))))
    assert "run-000999" in text and "1,000 runs" in text


def test_questions_and_their_groups_fit(started: Browser, tmp_path: Path) -> None:
    columns = {"x": np.arange(500) % 50, "c": np.array(["a", HOSTILE[0]])[np.arange(500) % 2]}
    asked: dict[str, Any] = {
        "task": "quantiles",
        "columns": ["x"],
        "domain": {"lower": [0], "upper": [100], "step": 1},
        "params": {"probabilities": [0.25, 0.5, 0.75]},
    }
    job = {
        "privacy": {"epsilon": 9.0, "delta": 1e-9},
        "questions": {
            "of_all": asked,
            "by_group": {**asked, "group_by": {"columns": ["c"], "keys": ["a", HOSTILE[0]]}},
        },
    }
    text = check(started, tmp_path, shoal.run(job, pa.table(columns)).report.encode())
    assert "2 questions about one input" in text and HOSTILE[0] in text


def test_the_curve_of_a_plan_fits(started: Browser, tmp_path: Path) -> None:
    job = changed_job(changes("quantiles"))
    curve = sweep(job, parse_sweep("privacy.epsilon=0.5..2", job), None, None)
    assert "quantiles" in check(started, tmp_path, curve_page(curve, "quantiles"))


@pytest.mark.parametrize(
    ("inside", "trouble"),
    [
        ("<script>console.log('x')</script>", "a message: x"),
        ("<script>fail()</script>", "an error: fail is not defined"),
        ("<script>alert(1)</script>", "a dialog: 1"),
        ("<img src='https://example.invalid/a.png'>", "loads https://example.invalid/a.png"),
        ("<p style='width: 2000px'>wide</p>", "it is 2000 pixels wide"),
        ("<p style='color: #eee'>pale</p>", "hardly seen: \\['pale'\\]"),
    ],
)
def test_what_is_wrong_is_found(started: Browser, tmp_path: Path, inside: str, trouble: str) -> None:
    page = f"<!doctype html><meta charset=utf-8><body style='margin:0'><main>{inside}</main>"
    with pytest.raises(Trouble, match=trouble):
        check(started, tmp_path, page.encode())
