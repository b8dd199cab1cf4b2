"""Every number of every job, one at a time, at the edge of what a number can be: a plan, or one sentence."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.errors import JobError
from pipelines.grouped_plan import plan_job
from pipelines.job.job import load_job
from pipelines.tasks import TASKS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ODD = ("5e-324", "-0.0", "1e308", "1e400", ".nan", "0x10", "1_000", "true", "9223372036854775808")
"""As they are written in a job."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of each number of a job."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def spoiled(job: dict[str, Any], path: tuple[str | int, ...], odd: str) -> str:
    """Return the text of a job with another number in a place."""
    changed = copy.deepcopy(job)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "HERE"
    return yaml.safe_dump(changed).replace("HERE", odd)


@pytest.mark.parametrize("task", TASKS)
def test_an_odd_number_is_planned_or_told(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences name a field; often that one, or the step that a bound makes too fine."""
    monkeypatch.chdir(EXAMPLES)
    example = yaml.safe_load((EXAMPLES / f"{task}.yaml").read_text())
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(example))
    defaults = load_job(str(file)).task_params
    params = example.setdefault("params", {})
    for name, value in vars(defaults).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            params.setdefault(name, value)
    for path in places(example):
        for odd in ODD:
            file.write_text(spoiled(example, path, odd))
            try:
                plan_job(load_job(str(file)), bytes(16))
            except JobError as error:
                assert re.match(r"(input|domain|privacy|params|contributions)\.?\w* ?", str(error))
                assert "\n" not in str(error)
