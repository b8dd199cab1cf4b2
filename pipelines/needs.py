"""What a run needs of a machine, from public parameters alone: passes over the rows, and memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.held import AT_WORK, held_by
from core.questions import Planned
from core.rounds import shared_passes
from pipelines.answers.text import number
from pipelines.grouped_plan import strands_of_job
from pipelines.job.job import Job
from pipelines.tasks import TASKS
from transforms.records import LARGE_IN_A_TURN

_PROGRAM, _COLUMN, _WORKER = 340, 40, 65
"""MB of the program with two workers and its report, of a column that they read, and of a further worker.
They were measured, as those below: see `make bench-memory`."""

_UNITS, _COLUMN_OF_UNITS = 70, 25
"""MB of bringing the rows of units together, and of each column that is brought with them."""

_MANY = 1 << 17
"""Counts from which on a plan names their part of the memory."""

_WAITING = 0.55
"""Part of the bytes of a count at work that it takes while others of its turn or other groups are at work."""

_RELEASED = 45
"""Bytes of a released count while the report is drawn, where a question releases all that it holds."""


def needs(asked: Sequence[tuple[Job, Planned]]) -> dict[str, Any]:
    """Return what a run needs, as JSON values.

    - `passes`: over the rows.
    - `memory_mb`: most memory of one machine that runs all steps with two workers, for any number of rows, in
      row groups of up to a million, without texts of hundreds of bytes.
    - `for_each_group_mb`: most memory for each further group, where groups are answered one by one; else 0.
    - `for_each_row_bytes`: most memory for each row of these groups, if that is less; None where it never is.
    - `growing`: phrases for what takes memory besides, and grows with the data.
    - `says`: all of that in words.

    Args:
        asked: each question as a job of its own, with its plan.
    """
    strands = [strands_of_job(job, plan, _groups(job)) for job, plan in asked]
    held = [held_by(of_question[0].rounds) for of_question in strands]
    apart = [own for own, of_question in zip(held, strands, strict=True) if len(of_question) > 1]
    most, *others = sorted(held, key=lambda own: own.bytes, reverse=True)
    turn, later = others[: LARGE_IN_A_TURN - 1], others[LARGE_IN_A_TURN - 1 :]
    waiting = _WAITING * sum(own.bytes for own in turn)
    released = _RELEASED * sum(own.counts for own in later if own.dense)
    columns = {name for job, _ in asked for name in _columns(job)}
    program = _PROGRAM + _COLUMN * len(columns)
    if any(job.unit is not None for job, _ in asked):
        program += _UNITS + _COLUMN_OF_UNITS * len(columns)
    growing = list(dict.fromkeys(phrase for own in held for phrase in own.growing))
    if any(job.input.join is not None for job, _ in asked):
        growing.append("some ten times the used columns of the joined table")
    functions = [job.task_params.memory_limit for job, _ in asked if TASKS[job.task].subsamples]
    if functions:
        growing.append(f"what a function takes, at most {max(functions):,} MB for each worker")
    found: dict[str, Any] = {
        "passes": shared_passes([each for of_question in strands for each in of_question]),
        "memory_mb": round(program + (most.bytes + waiting + released) / 1e6),
        "for_each_group_mb": round(_WAITING * max((own.bytes for own in apart), default=0) / 1e6, 1),
        "for_each_row_bytes": None if any(own.dense for own in apart) else round(_WAITING * AT_WORK),
        "growing": growing,
    }
    return {**found, "says": _says(found, max(each.counts for each in held))}


def _says(found: Mapping[str, Any], counts: int) -> str:
    passes = "once" if found["passes"] == 1 else f"{found['passes']} times"
    besides = [*found["growing"]]
    if found["for_each_group_mb"] >= 1:
        less = found["for_each_row_bytes"]
        rows = "" if less is None else f", or {less} bytes for each of its rows if that is less"
        besides.append(f"at most {number(found['for_each_group_mb'])} MB for each further group{rows}")
    beside = f", and besides: {'; '.join(besides)}" if besides else ""
    private = "" if counts < _MANY else f", {AT_WORK * counts // 10**6} of them for {counts:,} counts"
    memory = f"{found['memory_mb']:,} MB of memory for an input of any size{private}{beside}"
    return (
        f"The input, or what was made of it, is read {passes}. One machine with two workers takes at most "
        f"about {memory}. A further worker takes {_WORKER} MB."
    )


def _columns(job: Job) -> tuple[str, ...]:
    """Return the columns of values and keys, and those that prepare rows."""
    keys, given = job.group_keys, job.input
    prepares = [name for seen in given.uses().values() for name in seen]
    joined = () if given.join is None else (given.join.on, *(given.join.columns or ()))
    return (*given.columns, *(() if keys is None else keys.columns), *prepares, *joined)


def _groups(job: Job) -> int:
    """Return how many groups a question is asked about one by one."""
    keys = job.group_keys
    return len(keys.labels or ()) if job.apart and keys is not None else 0
