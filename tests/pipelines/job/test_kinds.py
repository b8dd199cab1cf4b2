"""Values of another kind than a field has: a boolean for a number, and a comma for a point."""

from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_raw
from pipelines.job.text import override_key
from pipelines.tasks import TASKS
from tests.pipelines.jobs import JOBS, changes


def kinds_in(kind: Any) -> set[Any]:
    """Return the types that a type is made of; those of a mapping are not looked at."""
    if hasattr(kind, "keys") or getattr(kind, "__origin__", None) is dict:
        return {dict}
    return {kind}.union(*map(kinds_in, get_args(kind)))


NUMBERS = [
    (task, field.name)
    for task in JOBS
    for field in fields(TASKS[task].params)
    if {int, float} & kinds_in(get_type_hints(TASKS[task].params)[field.name])
]


def test_every_task_has_numbers() -> None:
    assert {task for task, _ in NUMBERS} == set(TASKS) == set(JOBS)


@pytest.mark.parametrize("value", [True, False, [True], [[True, False]], [[[True, False]]]])
@pytest.mark.parametrize(("task", "name"), NUMBERS)
def test_no_parameter_takes_a_boolean_for_a_number(bench, task, name, value) -> None:
    job = bench.changed(changes(task))
    check_raw(job)
    job["params"] = {**job["params"], name: value}
    with pytest.raises(JobError, match=rf"params\.{name}\b.* is (True|False|\[)"):
        check_raw(job)


@pytest.mark.parametrize("field", ["privacy.epsilon", "privacy.delta", "params.failure", "domain.step"])
@pytest.mark.parametrize("value", ["1,0", "-0,5", "1,000", "1.000,5", "1,5e-3", "1,234.5", "1,234,567.89"])
def test_a_decimal_comma_is_told_as_such(bench, field, value) -> None:
    job = bench.changed({})
    override_key(job, f"{field}={value}")
    says = f"{field} is '{value}': it must be a number with a point, such as 1.5, and without a comma"
    with pytest.raises(JobError, match=f"{says}[.,]"):
        check_raw(job)


def test_a_comma_is_told_of_every_bound_and_of_whole_numbers(bench):
    job = bench.changed({})
    dimension = len(job["domain"]["lower"])
    for end in ("lower", "upper"):
        commas = {**job, "domain": {**job["domain"], end: ["0,5"] * dimension}}
        with pytest.raises(JobError, match=rf"domain\.{end}\[0\] is '0,5': it must be a number with a point"):
            check_raw(commas)
    override_key(job, "params.target=1,000")
    with pytest.raises(
        JobError, match=r"params\.target is '1,000': it must be a whole number, without a comma\."
    ):
        check_raw(job)
