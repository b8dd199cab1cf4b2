"""What is said of the keys of a task is what its model takes."""

import json

import pytest

from pipelines.job.job import check_job
from pipelines.job.keys import keys_of_task, show_keys, written
from pipelines.job.schema import schema_of_task
from pipelines.job.text import parse_job
from pipelines.tasks import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_every_key_has_a_kind_and_a_sentence(task):
    def each(keys):
        for key in keys:
            yield key
            yield from each(key.parts)

    found = list(each(keys_of_task(task)))
    said = {key.path for key in found if key.says} | {("task",)}
    assert [key.name for key in found if key.path not in said or not key.kind] == []
    assert {key.path[0] for key in found} == set(schema_of_task(task)["properties"])


@pytest.mark.parametrize("task", TASKS)
def test_defaults_are_those_of_the_job(bench, task):
    """A job that has every default of params in full is the job without them."""
    from tests.pipelines.jobs import changes

    job = bench.changed(changes(task))
    (params,) = (key for key in keys_of_task(task) if key.path == ("params",))
    defaults = {
        part.path[1]: part.default for part in params.parts if not part.required and part.default is not None
    }
    full = {**job, "params": {**defaults, **job["params"]}}
    assert check_job(full).hash() == check_job(job).hash()


def test_the_command_prints_them(bench):
    shown = bench.shoal("schema", "quantiles")
    assert shown.exit_code == 0 and shown.stdout.splitlines() == show_keys("quantiles")
    assert "  params.probabilities: list of numbers; required, such as [0.1, 0.5, 0.9]\n" in shown.stdout
    assert "  params.failure: number; 0.1 by default\n      Probability with which" in shown.stdout
    assert json.loads(bench.shoal("schema", "quantiles", "--json").stdout) == schema_of_task("quantiles")


def test_a_task_that_is_none_is_one_sentence(bench, refused):
    assert "'quantile' is no task (did you mean quantiles?)" in refused(bench.shoal("schema", "quantile"))


def test_the_version_is_told(bench):
    shown = bench.shoal("--version")
    assert (shown.exit_code, shown.stdout.split()[0]) == (0, "shoal")


@pytest.mark.parametrize(
    "value",
    ["x", "yes: [no]", "12", "2020-01-01", "true", "a, b", "#1", " x", "naïve", "[x", "a # b", 'quo"te', "-",
     "null", [1, 0.5, "a"], {"quantiles": [0.1]}, 1e-9, 1.0, 3, True, "C:\\x", "a\tb", "{run_id}"],
)  # fmt: skip
def test_values_are_written_as_they_are_read(value):
    assert parse_job(f"a: {written(value)}\nb: [{written(value)}]\n", "job") == {"a": value, "b": [value]}
