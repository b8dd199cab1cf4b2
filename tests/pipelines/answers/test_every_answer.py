"""Every answer as its reader sees it: all figures in sentences, tables and pictures are the right ones."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.answers.answer import Rows
from pipelines.report.summary import summary
from pipelines.tasks import TASKS
from tests.pipelines.answers.made_up import CASES, ROWS

TEXTS = Path(__file__).with_name("every_answer.txt")
_ENDS = ("x", "x2", "x3", "y", "y2", "low", "high", "ground", "up")
_MANY = 12
"""Marks of one kind, of more of which the picture is told by their ends."""


def release_of(name: str) -> dict[str, Any]:
    """Return a release as `release.json` has it, with what answers read of it."""
    said, promised, result = CASES[name]
    privacy = {"epsilon": 1.5, "delta": 3e-6, "spent_delta": 2e-6, "neighbors": "replace_one", "unit": None}
    return {
        "method": "m",
        **said,
        "privacy": {**privacy, "keep": None, **said.get("privacy", {})},
        "accuracy": {
            "failure": 0.1,
            "promises": promised,
            "smallest_target": said.get("smallest_target"),
        },
        "result": result,
    }


def told(name: str) -> Iterator[str]:
    """Yield the lines of the answer of a made-up release; see `told_of`."""
    yield from told_of(release_of(name), ROWS.get(name))


def told_of(release: dict[str, Any], rows: Rows) -> Iterator[str]:
    """Yield the lines of an answer: headline, lead, a terminal's, that of a group, and its pictures."""
    answer = TASKS[release["task"]].answers.answer(release, rows)
    yield from (answer.headline, answer.lead, *filter(None, summary(release, answer)), answer.brief)
    yield from (f"{phrase} {sentence}" for phrase, sentence in answer.advice)
    for figure in answer.figures:
        yield f"{figure.picture.title}. {figure.caption}"
        for plot in figure.picture.plots:
            yield from (f"  {line}" for layer in plot["layer"] if (line := _marks(layer)))


def _marks(layer: dict[str, Any]) -> str:
    """Return what a legend says of marks, and where they are; coasts are left out."""
    says, rows = layer["encoding"].get("color", {}).get("datum", ""), layer["data"]["values"]
    if "coast" in says or "border" in says:
        return ""
    axes = [each for key in ("x", "y") if (each := layer["encoding"].get(key, {})).get("title")]
    named = "; ".join(f"{each['title']}{_ends(each)}" for each in axes)
    if len(rows) > _MANY:
        found = {key: sorted(row[key] for row in rows) for key in _ENDS if key in rows[0]}
        marks = [f"{key} {_short(of[0])} to {_short(of[-1])}" for key, of in found.items()]
        marks += [f"sum {_short(sum(row['count'] for row in rows))}"] if "count" in rows[0] else []
    else:
        own = ("name", *_ENDS, "size", "count", "color", "column")
        marks = [" ".join(f"{key} {_short(row[key])}" for key in own if key in row) for row in rows]
    kind = " ".join(layer["mark"][key] for key in ("type", "interpolate") if key in layer["mark"])
    return f"{kind} [{says}] ({named}): {'; '.join(marks)}"


def _ends(axis: dict[str, Any]) -> str:
    ends = axis.get("scale", {}).get("domain")
    return "" if ends is None else f" {_short(ends[0])} to {_short(ends[1])}"


def _short(value: Any) -> str:
    return f"{round(value, 4) + 0.0:.10g}" if isinstance(value, float) else str(value)


def stored() -> dict[str, str]:
    """Return the texts by the names of their releases."""
    parts = TEXTS.read_text().split("\n## ")[1:]
    return dict(part.split("\n", 1) for part in parts)


def wrapped(name: str) -> str:
    """Return the lines of an answer as the file of texts has them."""
    lines = (textwrap.fill(line, 108, subsequent_indent="    ", drop_whitespace=True) for line in told(name))
    return "\n".join(lines) + "\n"


def test_every_task_has_an_answer_here() -> None:
    assert {said["task"] for said, _, _ in CASES.values()} == set(TASKS)
    assert set(stored()) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_an_answer_says_what_is_so(name: str) -> None:
    """Every figure is another one: a text with that of another, or with half or twice of it, is a difference.

    Whoever changes a text on purpose changes it in the file, too, and reads there what a reader would.
    """
    assert wrapped(name).split("\n") == [*stored()[name].rstrip("\n").split("\n"), ""]


def test_a_map_of_rectangles_has_the_cells_of_all_that_are_spread_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = [*told("rectangles")]
    monkeypatch.setattr("pipelines.answers.ranges._AT_ONCE", 1)
    assert [*told("rectangles")] == whole
