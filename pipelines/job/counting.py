"""Statistics that count rows or units alone, which need no column and no domain."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from pipelines.each_row import EACH_ROW
from pipelines.job.inputs import RowsInput

COUNTING = "statistics"
"""The task that counts."""

_COUNTS = ("count", "units")


def counts_alone(question: Mapping[str, Any], columns: object) -> bool:
    """Return whether a job or a question of one only counts, and names neither columns nor a domain.

    Args:
        question: as a file has it.
        columns: those that it gives; None for none.
    """
    params = question.get("params")
    measures = params.get("measures") if isinstance(params, Mapping) else None
    return (
        question.get("task") == COUNTING
        and columns is None
        and question.get("domain") is None
        and isinstance(measures, list | tuple)
        and bool(measures)
        and all(measure in _COUNTS for measure in measures)
    )


def with_each_row(shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input as a file has it with the column `EACH_ROW`."""
    derive = shared.get("derive") or {}
    return {**shared, "derive": {**derive, EACH_ROW: "1"}} if isinstance(derive, Mapping) else dict(shared)


def _is_taken(shared: Mapping[str, Any]) -> bool:
    """Return whether an input derives another column of this name."""
    derive = shared.get("derive")
    return isinstance(derive, Mapping) and derive.get(EACH_ROW, "1") != "1"


def its_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of what only counts, and the checks, of which there is nothing to check.

    Args:
        given: an input or a question, which may ask for checks.
    """
    return {"columns": [EACH_ROW], "checks": given.get("checks", 0)}


def completed_counts(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as a file has it with columns and a domain, where it only counts and names none."""
    given = job.get("input")
    if not isinstance(given, Mapping) or _is_taken(given) or not counts_alone(job, given.get("columns")):
        return dict(job)
    return {**job, "input": {**with_each_row(given), **its_columns(given)}, "domain": its_domain()}


def completed_questions(
    job: Mapping[str, Any], asked: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return a job of several questions, and these, as `completed_counts` returns a job of one.

    Args:
        job: as a file has it, with an input.
        asked: its questions by name.
    """
    counting = {
        name: {**its, **its_columns(its), "domain": its_domain()}
        for name, its in asked.items()
        if isinstance(its, Mapping) and counts_alone(its, its.get("columns"))
    }
    if not counting or _is_taken(job["input"]):
        return job, asked
    return {**job, "input": with_each_row(job["input"])}, {**asked, **counting}


def its_domain() -> dict[str, Any]:
    """Return the domain of the column."""
    return {"lower": [0], "upper": [1], "step": 1}


def may_lack(*names: str) -> ConfigDict:
    """Return the settings of a model whose JSON schema lets keys out that others need."""

    def change(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema.get("required", ()) if name not in names]

    return ConfigDict(json_schema_extra=change)


class StatisticsInput(RowsInput):
    """The input of statistics."""

    model_config = may_lack("columns")
