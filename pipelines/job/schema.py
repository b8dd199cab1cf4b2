"""The JSON schema of job files."""

from typing import Any

from pydantic import TypeAdapter

from pipelines.errors import JobError, quoted
from pipelines.job.job import job_model
from pipelines.job.questions import questions_schema
from pipelines.nearest import meant_task
from pipelines.tasks import TASKS

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return the JSON schema of the job file."""
    kinds = {name: job_model(name) for name in TASKS}
    union: Any = questions_schema(kinds)
    for kind in reversed(kinds.values()):
        union = kind | union
    return {"$schema": _DIALECT, "title": "Shoal job", **TypeAdapter(union).json_schema()}


def schema_of_task(task: str) -> dict[str, Any]:
    """Return the JSON schema of the jobs of one task.

    Raises:
        JobError: there is no such task.
    """
    if task not in TASKS:
        close = meant_task(task, TASKS)
        raise JobError(f"{quoted(task)} is no task{close}: the tasks are {', '.join(TASKS)}.")
    return {"$schema": _DIALECT, **job_model(task).model_json_schema()}
