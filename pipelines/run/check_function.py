"""Try the function of a job on made-up rows and report its problems, before any budget is spent.

The rows are made from public bounds alone. They are nobody's data, so the texts of errors may be shown.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.answers.text import number
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.job.subsamples_job import SubsamplesJob
from transforms.run_function import Function, FunctionError, FunctionRunner
from transforms.split_units import stream

_ROWS = 1000
_SAME, _ONE = "all rows the same", "one row"
_BOUNDS = "every value at a bound"
_EXTREME = (_BOUNDS, _SAME, _ONE)
"""Kinds of rows that a block rarely has. There an answer may be missing: the block then has the default."""
_SLOW = 0.5
"""A function that takes more than this part of its time limit may exceed it on a larger block."""


@dataclass(frozen=True)
class Finding:
    """The behavior of the function on one kind of rows.

    Args:
        rows: the kind of rows.
        answer: the answer of the function, data units; None if it failed.
        seconds: the time it took.
        problem: a sentence; empty if there is no problem.
        mild: whether an answer like this one serves: real rows may have another one.
    """

    rows: str
    answer: tuple[float, ...] | None
    seconds: float
    problem: str
    mild: bool = False

    @property
    def fails(self) -> bool:
        """Whether the function has a problem on ordinary rows."""
        return bool(self.problem) and not self.mild and self.rows not in _EXTREME


def check(job: Job) -> list[Finding]:
    """Run the job's function on made-up rows of several kinds, under the job's limits.

    The rows have float64 columns within `input.bounds`, or from 0 to 1 without them. Some kinds of rows are
    harmless, others are extreme cases of a random block. Neither the input nor the ledger is read.

    Raises:
        JobError: the task has no function, or it cannot be imported.
    """
    if not isinstance(job, SubsamplesJob):
        raise JobError(f"task is {job.task}: only sample_and_aggregate has a function to check.")
    function: Function = job.untrusted()
    bounds = np.array(job.input.bounds or [(0.0, 1.0)] * len(job.input.columns))
    try:
        with FunctionRunner(function, report_errors=True) as runner:
            return [_try(runner, kind, table) for kind, table in _made_up(job.input.columns, bounds)]
    except FunctionError as error:
        raise JobError(str(error)) from None


def _made_up(columns: tuple[str, ...], bounds: NDArray[np.float64]) -> Iterator[tuple[str, pa.RecordBatch]]:
    rng = np.random.default_rng(0)
    low, high = bounds.T
    values = rng.uniform(low, high, (_ROWS, len(columns)))
    holes = rng.uniform(size=values.shape) < 0.1

    def batch(rows: NDArray[np.float64], nulls: NDArray[np.bool_] | None = None) -> pa.RecordBatch:
        arrays = [
            pa.array(rows[:, i], mask=None if nulls is None else nulls[:, i]) for i in range(len(columns))
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    yield f"{_ROWS:,} uniform rows", batch(values)
    yield f"{_ROWS:,} uniform rows again", batch(values)
    yield "a tenth of the values null", batch(values, holes)
    yield _BOUNDS, batch(np.where(rng.uniform(size=values.shape) < 0.5, low, high))
    yield _SAME, batch(np.tile(values[:1], (_ROWS, 1)))
    yield _ONE, batch(values[:1])


def _try(runner: FunctionRunner, kind: str, batch: pa.RecordBatch) -> Finding:
    began = time.monotonic()
    raw = runner.ask(stream(batch))
    seconds = time.monotonic() - began
    return Finding(kind, *_judge(runner.function, raw, seconds))


def _judge(
    function: Function, raw: bytes, seconds: float
) -> tuple[tuple[float, ...] | None, float, str, bool]:
    size = 8 * function.grid.dimension
    if len(raw) > size:
        return None, seconds, f"The function raised {raw[size:].decode(errors='replace').strip()}.", False
    if len(raw) < size:
        late = seconds >= function.seconds and not function.constant_time
        why = "The function exceeded params.time_limit" if late else "The process ended without an answer"
        return None, seconds, f"{why}. It may also need more memory than params.memory_limit.", False
    answer = tuple(np.frombuffer(raw, dtype=np.float64).tolist())
    if not all(map(math.isfinite, answer)):
        return answer, seconds, "The answer is not finite, so the default replaces it.", False
    grid = function.grid
    if seconds > _SLOW * function.seconds and not function.constant_time:
        return (
            answer,
            seconds,
            "The function took more than half of params.time_limit. It may be killed on a larger block.",
            False,
        )
    outside = [i for i, value in enumerate(answer) if not grid.lower[i] <= value <= grid.upper[i]]
    if outside:
        clamped = f"Values {outside} lie outside params.outputs and are clamped to its bounds."
        return answer, seconds, clamped, True
    return answer, seconds, "", False


def show(findings: list[Finding]) -> list[str]:
    """Return the findings as lines for a terminal. The last line says whether the function works."""
    width = max(len(finding.rows) for finding in findings) + 2
    lines, said = [], ""
    for finding in findings:
        answer = "none" if finding.answer is None else ", ".join(number(value) for value in finding.answer)
        lines.append(f"{finding.rows:<{width}}{answer} in {number(finding.seconds, 2)} s")
        if finding.problem:
            same = "The same problem." if finding.problem == said else finding.problem
            lines.append(f"{'':<{width}}{same}")
        said = finding.problem or said
    first, second = (finding.answer for finding in findings[:2])
    if first is not None and not np.array_equal(first, second or (), equal_nan=True):
        lines.append(
            "The function answers the same rows differently. That is allowed: each block is answered once."
        )
    return [*lines, _verdict(findings)]


def _verdict(findings: list[Finding]) -> str:
    if any(finding.fails for finding in findings):
        return "The function does not work on ordinary rows: mend it, or the job, before a run."
    extreme = [finding.rows for finding in findings if finding.problem and finding.rows in _EXTREME]
    outside = any(finding.mild and finding.rows not in _EXTREME for finding in findings)
    if not extreme and not outside:
        return "The function works on all of these rows."
    said = ["The function works on ordinary rows."]
    if outside:
        said.append(
            "Answers of these made-up ones lie outside of params.outputs; if those of real rows may, too, "
            "give wider bounds."
        )
    if extreme:
        said.append(
            f"It has a problem on extreme ones ({'; '.join(extreme)}). A block of a run is rarely like that, "
            "and if it is, it spoils at most its own answer."
        )
    return " ".join(said)
