"""Every part of a report says of its release what is so, and nothing of another release."""

import html
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.answers.text import SECRET_PAIRS, hides
from pipelines.grouped_release import answers_by_group
from pipelines.report.report import render, render_curve, render_groups, render_questions
from pipelines.report.summary import summary_of
from tests.pipelines.answers.test_every_answer import release_of

TEXTS = Path(__file__).with_name("every_report.txt")


def whole(name: str, said: Mapping[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    """Return a release with all that a report may show; each figure is another one."""
    made = release_of(name)
    own = {
        **made["privacy"],
        **{"neighbors": "add_or_remove_one", "spent": 1.25, "accountant": "zcdp"},
        **privacy,
    }
    own.setdefault("hides", hides(own["neighbors"], own["unit"], own.get("count")))
    drawn = {"sensitivity": 7.0, "epsilon": 0.375, "delta": 0.0, "rho": 0.0}
    return {
        **made,
        **{"run_id": "run-5", "job": "5eb63bbb", "outcome": "not_found"},
        "why": "Methods are compared by their age.",
        "comparison": {"by": "their age", "errors": {made["method"]: 3.25, "other": 8.75, "third": None}},
        "rounds": [
            {"round": "first", "purpose": "what is first", "share": 0.125},
            {"round": "second", "purpose": "what is second", "share": 0.875},
            {"round": "third", "purpose": "what is free", "share": 0.0},
        ],
        "mechanisms": [
            {"round": "first", "mechanism": "laplace", "scale": 9.5, **drawn},
            {"round": "first", "mechanism": "laplace", "scale": 9.5, **drawn},
            {"round": "second", "mechanism": "gaussian", "scale": 6.5, **drawn, "rho": 0.0625},
            {"round": "second", "mechanism": "above", "scale": 4.5, **drawn, "delta": 1e-7},
        ],
        "notes": ["What a reader should know."],
        "software": {"shoal": "1.2.3", "python": "3.11.9"},
        **(said or {}),
        "privacy": own,
    }


PREPARED = {
    "where": "age > 17",
    "derive": {"hour": "hour(time)", "twice": "2 * x"},
    "join": {"path": "cities.parquet", "on": "city"},
}


def of_a_unit() -> str:
    ball = {**release_of("a ball")["domain"], "ball": {"center": [3.5, 4.5], "radius": 2.75}}
    said = {"outcome": "released", "rows": PREPARED, "domain": ball}
    return render(whole("a ball", said, keep="last", order="time", epsilon=6.5))


def of_places() -> str:
    return render(whole("a ball on a map", {"outcome": "released"}))


def of_rows() -> str:
    return render(whole("no ball", neighbors="replace_one", epsilon=0.75, spent=0.625))


def of_records() -> str:
    return render(whole("cells", {"rows": {"count": "n"}}, hides=SECRET_PAIRS, count="n"))


def of_earlier_versions() -> str:
    made = whole("a median", epsilon=25.0, spent_delta=0.0, delta=0.0)
    gone = ("why", "comparison", "rounds")
    return render({key: value for key, value in made.items() if key not in gone})


def of_statistics() -> str:
    cut = {"columns": ["city", "day"], "truncate": {"day": "month"}, "public_keys": 1234}
    bounds = {"groups": 2, "rows": 3, "clamp": "unit"}
    return render(whole("groups", {"group_by": cut, "contributions": bounds}))


def of_many_columns() -> str:
    many = [f"c{axis}" for axis in range(8)]
    domain = {"columns": many, "lower": [-1.5] * 8, "upper": [2.5] * 8, "step": 0.5}
    params = {"target": None, "k": 1, "coverage": 0.35, "shares": [0, 1], "loose": False}
    said = {"domain": domain, "params": params, "result": None}
    return render(whole("all balls", said))


def by_group(said: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a release of medians of three groups, of which one has none."""
    of_each = {"epsilon": 0.625, "delta": 1e-9, "spent": 0.5, "spent_delta": 5e-10, "accountant": "pure"}
    groups = [
        {"key": [key], "outcome": "released" if found else "not_found", "result": found}
        for key, value in (("a", 3.5), ("b", None), ("c", 9.5))
        for found in [None if value is None else {"value": value, "scale": None, "low": 1.5, "high": 11.5}]
    ]
    keys = {"columns": ["city"], "truncate": {"city": "month"}, "public_keys": 3}
    more = {
        "contributions": {"groups": 2, "rows": 1},
        "groups": groups,
        "each_group": {**of_each, "says": "Each is by itself."},
        "group_by": keys,
    }
    return whole("a median", {**more, **(said or {})}, unit="who")


def of_groups(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("pipelines.report.report._MOST_PARTS", 2)
    made = {key: value for key, value in by_group().items() if key != "result"}
    return render_groups(made, answers_by_group(made, None))


def asked() -> dict[str, Any]:
    """Return a release of two questions, the second of which is asked about each group."""
    answers = {"where": whole("a ball", {"outcome": "released"}, epsilon=0.875), "middle": by_group()}
    del answers["middle"]["result"]
    shared = {"task": "questions", "schema": 1, "answers": answers}
    return {**whole("a point", unit="who", factor=1.75), **shared}


def of_questions() -> str:
    made = asked()
    return render_questions(made, made["answers"], {"where": None, "middle": None})


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("pipelines.report.summary._MOST_GROUPS", 2)
    groups = {key: value for key, value in by_group().items() if key != "result"}
    nowhere: Any = None  # neither has a table
    lines = [line for made in (groups, asked()) for line in summary_of(nowhere, made)]
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def of_a_curve() -> str:
    return render_curve("A title", "What it is.", "Made from this.", [])


REPORTS = [of_a_unit, of_places, of_rows, of_records, of_earlier_versions, of_statistics, of_many_columns]
REPORTS += [of_groups, of_questions, of_a_curve, on_a_terminal]


def text_of(page: str) -> str:
    """Return what a page says, without its style and pictures; links, badges and bars as far as they say."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    page = re.sub(r"<svg.*?<title>(.*?)</title>.*?</svg>", r"[picture: \1]", page, flags=re.S)
    page = re.sub(r'<article id="([^"]*)">', r"\n(\1)", page)
    page = re.sub(r'<a href="([^"]*)">', r"(to \1) ", page)
    page = re.sub(r'<span class="badge([^"]*)">', r"[badge\1] ", page)
    page = re.sub(r'aria-label="([^"]*)"', r">\1<", page)
    page = re.sub(r'content="(default-src[^"]*)"', r">\1<", page)
    page = re.sub(r"\s+", " ", page)
    page = re.sub(r"</?(h\d|p|li|tr|section|header|div|dl|dt|title|caption|ul|table|meta)\b", r"\n<\1", page)
    page = re.sub(r"</?(td|th|dd|small)\b", r" | <\1", page)
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    lines = (re.sub(r"[ |]+$|^[ |]+", "", re.sub(r"(\s*\|)+\s*", " | ", line)) for line in text.split("\n"))
    wrapped = (textwrap.fill(line, 108, subsequent_indent="    ") for line in lines if line)
    return "\n".join(wrapped) + "\n"


def stored() -> dict[str, str]:
    return dict(part.split("\n", 1) for part in TEXTS.read_text().split("\n## ")[1:])


def page_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (make,) = (each for each in REPORTS if each.__name__ == name)
    return make(monkeypatch) if make in (of_groups, on_a_terminal) else make()


@pytest.mark.parametrize("name", [each.__name__ for each in REPORTS])
def test_a_report_says_what_is_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes a text on purpose changes it in the file, too, and reads there what a reader would."""
    page = text_of(page_of(name, monkeypatch))
    assert page.split("\n") == [*stored()[name].rstrip("\n").split("\n"), ""]


def test_every_text_is_of_a_report() -> None:
    assert set(stored()) == {each.__name__ for each in REPORTS}
