"""Every example runs, answers, and is on the page of its task; the tutorial can be followed."""

import html
import itertools
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import shoal
from examples.browser import THEMES, WIDTHS
from examples.make_data import write
from examples.notebook import NOTEBOOK, cells_of_code, run_cells
from examples.tables import allowed, parameters, with_tables
from pipelines.cli import app
from pipelines.figures import names_of
from pipelines.job.keys import Key
from pipelines.tasks import TASKS

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs" / "tasks"
SECTIONS = ["When to use it", "A job", "An answer", "Parameters", "The promise", "Limits", "Cost"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the rows of the examples."""
    made = tmp_path_factory.mktemp("examples")
    write(made / "data")
    return made


def test_every_task_has_an_example_a_page_and_a_picture() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(TASKS)
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == set(TASKS)
    for task in TASKS:
        assert (ROOT / "docs" / "gallery" / f"{task}.png").stat().st_size < 150_000
        for device, theme in itertools.product(WIDTHS, THEMES):
            name = f"gallery/{task}-{device}-{theme}.png"
            assert (ROOT / "docs" / name).stat().st_size < 150_000
            assert f"]({name})" in (ROOT / "docs" / "gallery.md").read_text()
        assert f"]({task}.md)" in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("task", TASKS)
def test_a_page_has_the_job_the_tables_and_an_answer(task: str) -> None:
    text, job = (PAGES / f"{task}.md").read_text(), (EXAMPLES / f"{task}.yaml").read_text()
    assert f"```yaml\n{job}```" in text
    assert f"<!-- parameters: {task} -->" in text and f"<!-- promises: {task} -->" in text
    assert text == with_tables(text), "`make tables` writes them again from the code"
    assert re.findall("^## ([A-Z][a-z ]+)", text, re.M) == SECTIONS
    assert re.search(r"^## An answer\n\n```text\n.*^spent .*^```", text, re.M | re.S)
    assert yaml.safe_load(job)["task"] == task


def test_a_table_says_what_the_check_of_a_job_allows() -> None:
    rows = {line.split("`")[1]: line for line in parameters("k_cover").splitlines()[2:]}
    assert rows["k"].startswith("| `k` | whole number | required | a whole number from 1 to 50 | How many")
    assert "| number | none | above 0 and at most 1 |" in rows["coverage"]  # beside a target it is an error
    assert "| text | `auto` | `auto` or `practical` |" in rows["method"]
    job = yaml.safe_load((EXAMPLES / "cdf.yaml").read_text())
    free = Key(("params", "ranges"), "list of lists of numbers", False, [], None, "")
    assert allowed(free, (job,)) == "a range is two finite numbers, the lower one first"


def test_tables_are_made_again_between_their_comments_alone() -> None:
    page = "a\n<!-- promises: cdf -->\nold\n<!-- end -->\nb <!-- end -->\n"
    made = with_tables(page)
    assert made.startswith("a\n<!-- promises: cdf -->\n\nWhat every method") and "old" not in made
    assert made.endswith("\n\n<!-- end -->\nb <!-- end -->\n")
    assert with_tables(made) == made


@pytest.mark.parametrize("task", TASKS)
def test_the_names_of_promises_are_listed(task: str) -> None:
    (row,) = re.findall(rf"^\| `{task}` \| (.*) \|$", (ROOT / "docs" / "choosing.md").read_text(), re.M)
    assert re.findall(r"`(\w+)`", row) == names_of(task)


@pytest.mark.parametrize("task", TASKS)
def test_an_example_runs_and_answers(folder: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    job = yaml.safe_load((EXAMPLES / f"{task}.yaml").read_text())
    del job["output"]
    if task == "sample_and_aggregate":  # which noise ends as not found with 0.2% at epsilon 1
        job["privacy"]["epsilon"] = 50.0
    release = shoal.run(job)
    assert release.values["outcome"] == "released"
    budget = release.values["privacy"]
    assert 0 < budget["spent"] <= budget["epsilon"] * (1 + 1e-9)


def test_the_notebook_runs_and_its_outputs_are_stored() -> None:
    """Its cells run from top to bottom, and show what the stored outputs show, with other noise."""
    page = json.loads(NOTEBOOK.read_text())
    stored = [
        "".join(text for made in cell["outputs"] for text in made["data"]["text/plain"])
        for cell in cells_of_code(page)
    ]
    shown = run_cells(page)
    assert [bool(text) for text in stored] == [value is not None for value in shown]
    head, answer, true, release, promised, curve, centers, counts, near = shown
    assert answer["low"] - 0.1 <= true <= answer["high"] + 0.1
    assert release.report in html.unescape(release._repr_html_()) and "spent " in str(release)
    assert promised["rank_error"] > 0 and "privacy.epsilon" in str(curve)
    assert len(head) == 3 and centers.shape == (4, 2) and abs(counts.sum() - 24_329) < 1_000
    assert len(set(near)) == 2


def test_the_tutorial_can_be_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs are written and its commands run from top to bottom."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    monkeypatch.chdir(folder)
    for name, job in re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", text, re.M | re.S):
        (folder / name).write_text(job)
    commands = re.findall(r"^    \.\./\.venv/bin/shoal (.+)$", text, re.M)
    assert len(commands) == 7
    for command in commands:
        ran = CliRunner().invoke(app, shlex.split(command))
        assert ran.exit_code == 0, (command, ran.output)
    charged = json.loads((folder / "books" / "checkins.json").read_text())
    assert len(charged["charges"]) == 2
    released = os.listdir(folder / "releases")
    assert sorted(released) == ["checkins-2026-11-09", "checkins-2026-11-10", "spent-1"]


def test_the_quick_start_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders made up as its page says: its job, its two commands, and what the page shows of the answers.

    With 1,800 customers the promises of error are kept with wide margins: each of the four comparisons below
    fails by chance with probability below 1e-6.
    """
    text = (ROOT / "docs" / "quickstart.md").read_text()
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(4), 5_000
    cities = np.array(["Berlin", "Hamburg", "München", "Köln", "Leipzig", "Bremen", "Linz"])
    city, owner = rng.choice(7, n, p=[0.3, 0.2, 0.17, 0.15, 0.1, 0.07, 0.01]), rng.integers(0, 1_800, n)
    days = np.datetime64("2026-01-01") + rng.integers(0, 90, n)
    amounts = np.round(rng.lognormal(3.5, 0.7, n), 2)
    lines = ["order_id,order_date,city,amount,customer_id"]
    rows = zip(days, cities[city], amounts, owner, strict=True)
    lines += [f"{i},{day},{name},{amount},C{who:04}" for i, (day, name, amount, who) in enumerate(rows)]
    Path("orders.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines[0] in text
    ((name, job),) = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", text, re.M | re.S)
    Path(name).write_text(job)
    commands = re.findall(r"^    shoal (\w+ orders.yaml)", text, re.M)
    assert [command.split()[0] for command in commands] == ["plan", "run"]
    for command in commands:
        ran = CliRunner().invoke(app, shlex.split(command))
        assert ran.exit_code == 0, (command, ran.output)
    for part in ("by_city:", "city ", "Berlin ", "typical:", "kept      one random row of each unit"):
        assert part in ran.output and part in text
    (folder,) = Path("releases").iterdir()
    assert {"report.html", "release.json", "by_city.parquet", "days.parquet"} <= set(os.listdir(folder))
    found = {row["city"]: row for row in pq.read_table(folder / "by_city.parquet").to_pylist()}
    berlin = city == 0
    kept = np.minimum(np.bincount(owner[berlin]), 3).sum()  # at most 3 orders of a customer count
    assert {"Berlin", "Hamburg", "München", "Köln", "Leipzig", "Bremen"} == set(found)
    assert abs(found["Berlin"]["count"] - kept) < 200
    assert abs(found["Berlin"]["mean"] - amounts[berlin].mean()) < 25
    answers = json.loads((folder / "release.json").read_text())["answers"]
    assert abs(answers["typical"]["result"]["value"] - np.median(amounts)) < 8
    histogram = pq.read_table(folder / "days.parquet")
    assert histogram.num_rows == 90
