"""A release from Python has what release.json, its tables and its report have."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.shown import Shown
from tests.shoal.test_calls import AGES, COUNTS, JOB, PEOPLE, counts

QUESTIONS: dict[str, Any] = {
    "input": {},
    "privacy": {"epsilon": 100.0, "delta": 0},
    "questions": {
        "ages": {**{key: JOB[key] for key in ("task", "domain", "params")}, "columns": ["age"], "checks": 0},
        "middle": {
            "task": "median",
            "columns": ["age"],
            "domain": JOB["domain"],
            "params": {},
        },
    },
}


def test_several_questions_have_an_answer_each() -> None:
    release = shoal.run(QUESTIONS, PEOPLE)
    assert list(release.answers) == ["ages", "middle"]
    assert (release.result, release.table, release.found) == (None, None, True)
    ages, middle = release.answers.values()
    assert counts(ages) == COUNTS
    assert middle.table is None
    assert middle.result["value"] == pytest.approx(np.median(AGES), abs=1)
    assert release.error == {"ages": ages.error, "middle": middle.error}
    assert set(shoal.plan(QUESTIONS).error) == {"ages", "middle"}
    for one in release.answers.values():
        assert str(one).splitlines()[0] in str(release)
        assert "<h1" in one.report


def test_groups_have_an_answer_each() -> None:
    """Each with the rows of its own of the table."""
    job = {**JOB, "group_by": {"columns": ["city"], "keys": ["Bern", "Ulm", "Rom"]}}
    release = shoal.run(job, PEOPLE)
    assert list(release.answers) == ["Bern", "Ulm", "Rom"]
    cities = PEOPLE.column("city").to_pylist()
    for name, answer in release.answers.items():
        own = AGES[np.array(cities) == name]
        assert counts(answer) == np.bincount(own // 10, minlength=10).tolist()
        assert "<h1" in answer.report
        assert str(answer)
    assert release.table is not None
    assert release.table.num_rows == 30
    assert release.error == release.answers["Ulm"].error


def test_groups_of_a_question_have_an_answer_each() -> None:
    """As those of a job that asks about them alone; also where an answer is no table."""
    groups = {"group_by": {"columns": ["city"], "keys": ["Bern", "Ulm", "Rom"]}}
    asked = {name: {**question, **groups} for name, question in QUESTIONS["questions"].items()}
    release = shoal.run({**QUESTIONS, "questions": asked}, PEOPLE)
    cities = PEOPLE.column("city").to_pylist()
    for question, answer in release.answers.items():
        assert list(answer.answers) == ["Bern", "Ulm", "Rom"]
        assert str(answer).splitlines()[0] in str(release)
        assert "Ulm" in answer._repr_html_()
        for name, one in answer.answers.items():
            own = AGES[np.array(cities) == name]
            if question == "ages":
                assert counts(one) == np.bincount(own // 10, minlength=10).tolist()
            elif len(own):
                assert one.result["value"] == pytest.approx(np.median(own), abs=3)
            assert str(one)
            assert "<h1" in one.report


def test_a_table_in_parts_is_one_table() -> None:
    job = {**JOB, "privacy": {"epsilon": 100.0, "delta": 1e-9}, "params": {"cells": [10], "parts": 3}}
    job["params"]["method"] = "sparse"
    release = shoal.run(job, PEOPLE)
    assert len(release.values["table"]) == 3
    assert sorted(counts(release)) == sorted(COUNTS)


def test_nothing_found_is_no_result() -> None:
    job = {**JOB, "privacy": {"epsilon": 1.0, "delta": 1e-9}, "params": {"cells": [10], "method": "sparse"}}
    release = shoal.run(job, PEOPLE[:1])
    assert (release.result, release.table, release.found) == (None, None, False)
    assert "protected like any other" in str(release)


def test_a_notebook_shows_a_release_and_a_plan() -> None:
    release = shoal.run(JOB, PEOPLE)
    assert repr(release) == str(release)
    assert "spent" in str(release)
    page = release._repr_html_()
    assert page.count('"') == 4, "the page is one attribute, and all quotes in it are escaped"
    assert re.match(r'<iframe srcdoc="&lt;!doctype html&gt;', page)
    plan = shoal.plan(JOB)
    assert plan.values["method"] == "dense"
    assert plan._repr_html_() == f"<pre>{plan}</pre>"


def test_names_are_no_markup_on_a_page() -> None:
    """Such as the name of a column, and the key of a group."""
    job = {**JOB, "input": {"columns": ["<b>"], "checks": 0}}
    job["group_by"] = {"columns": ["city"], "keys": ["<b>", "x"]}
    release = shoal.run(job, pa.table({"<b>": AGES, "city": ["<b>"] * len(AGES)}))
    assert "<b>" in str(release)
    assert "<b>" not in release._repr_html_()
    assert "<b>" not in shoal.plan(job)._repr_html_()


def test_a_stored_release_is_opened_again(tmp_path: Any) -> None:
    """By its folder or its file, with tables, answers and report, as the run returned it."""
    for name, job in (("one", JOB), ("several", QUESTIONS)):
        release = shoal.run({**job, "output": str(tmp_path / name), "run_id": "a"}, PEOPLE)
        for place in (tmp_path / name, f"{tmp_path / name}/release.json"):
            opened = shoal.Release.open(place)
            assert (opened.values, opened.table) == (release.values, release.table)
            assert opened.answers.keys() == release.answers.keys()
            assert (str(opened), opened.report) == (str(release), release.report)
    with pytest.raises(shoal.ShoalError, match=r"release\.json does not exist: give a release"):
        shoal.Release.open(tmp_path)
    (tmp_path / "one" / "release.json").write_text("[]")
    with pytest.raises(shoal.ShoalError, match="is not a release of schema 1"):
        shoal.Release.open(tmp_path / "one")


def test_a_plan_says_why_a_run_would_be_refused(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.json")
    job = {**JOB, "privacy": {**JOB["privacy"], "ledger": ledger}}
    (refusal,) = shoal.plan(job).refusals
    assert refusal.startswith(f"privacy.ledger {ledger} does not exist")
    assert str(shoal.plan(job)) == f"{shoal.plan(JOB)}\nA run here would be refused. {refusal}"
    assert shoal.plan(JOB).refusals == ()


def test_a_page_in_a_notebook_is_in_a_frame_that_may_do_nothing() -> None:
    """A name in the data may be anything, so the page is escaped, and its frame has no rights."""
    tags: list[tuple[str, dict[str, str | None]]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append((tag, dict(attrs)))  # type: ignore[method-assign]
    page = '<p title="x">&amp; <script>1</script>'
    parser.feed(Shown({}, "text", page)._repr_html_())
    ((tag, attributes),) = tags
    assert tag == "iframe" and attributes["srcdoc"] == page
    assert "sandbox" in attributes and not attributes["sandbox"]  # such as allow-scripts
    assert Shown({}, "a < b")._repr_html_() == "<pre>a &lt; b</pre>"
