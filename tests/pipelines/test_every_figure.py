"""Every promise of every method, and every figure by which methods are compared, is the one in a file.

Other tests show that promises hold, and of some promises that no smaller ones would. This one shows that no
change of the code makes a promise larger or smaller, or another method the best one, where nobody meant to.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.plan import Plan
from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.plan import make_plan
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import SALT, SETTINGS_OF, jobs_of, shared_drafts

FIGURES = Path(__file__).with_name("every_figure.txt")
TITLE = "The figures of plans, method by method; see test_every_figure.py.\n"
NEAR = 2e-5
"""Figures have six digits in the file."""


def plans(task: str) -> Iterator[tuple[str, Plan]]:
    """Give the plans of a task's settings in which no method is asked for: they have the figures of all."""
    with shared_drafts():
        for name, raw in jobs_of(task):
            if raw["params"].get("method", "auto") == "auto":
                try:
                    yield name, make_plan(check_job(raw), SALT)
                except JobError:
                    continue


def figures(plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the figures of each method that serves a setting: what it promises, and by what it is compared."""
    assert plan.chosen is not None
    own = {**plan.promises, "smallest_target": plan.smallest_target}
    for method, promises in {plan.method: own, **plan.alternatives}.items():
        named = {**promises, "compared": plan.chosen.errors[method]}
        yield method, {name: value for name, value in named.items() if value is not None}


def lines_of(task: str) -> list[str]:
    """Return the lines of a task: of each setting its name, and of each method a line, the best one first.

    A setting with the lines of an earlier one has none.
    """
    known: dict[str, str] = {}
    for name, plan in plans(task):
        lines = (
            "  ".join([f"    {method}", *(f"{key} {_text(value)}" for key, value in named.items())])
            for method, named in figures(plan)
        )
        known.setdefault("\n".join(lines), name)
    return [line for text, name in known.items() for line in (name, *text.split("\n"))]


def _text(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:.6g}" if math.isfinite(value) else "none"
    return "/".join(map(_text, value.values() if isinstance(value, dict) else value))


def alike(one: str, other: str) -> bool:
    """Return whether two lines are the same, up to the rounding of their figures."""
    parts = [line.replace("/", " ").split() for line in (one, other)]
    return len(parts[0]) == len(parts[1]) and all(map(_alike, *parts))


def _alike(one: str, other: str) -> bool:
    try:
        return one == other or math.isclose(float(one), float(other), rel_tol=NEAR)
    except ValueError:
        return False


def stored() -> dict[str, list[str]]:
    """Return the lines of each task in the file."""
    parts = (part.split("\n", 1) for part in FIGURES.read_text().split("\n## ")[1:])
    return {task: text.rstrip("\n").split("\n") for task, text in parts}


@pytest.mark.parametrize("task", SETTINGS_OF)
def test_figures_are_what_they_were(task: str) -> None:
    """Whoever changes one on purpose runs this file as a program, and reads what becomes of the others."""
    before, now = stored()[task], lines_of(task)
    changed = [pair for pair in zip(before, now, strict=False) if not alike(*pair)]
    assert not changed
    assert len(before) == len(now)


if __name__ == "__main__":
    FIGURES.write_text("\n## ".join([TITLE, *("\n".join([task, *lines_of(task), ""]) for task in TASKS)]))
