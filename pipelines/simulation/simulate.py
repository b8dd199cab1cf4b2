"""Run a planned job on made-up records with its real noise, and measure how far answers are from the truth.

The records are nobody's: they follow from a number, a shape and a fixed seed. The rounds are those of a run
and so is the noise, but they run in this process and their answers stay in it: nothing is read, charged or
written.

What is made up are records as the rounds get them. Where the job has a privacy unit they are units, or as
many rows of each as it may have; where it has groups they are the records of one group, and all others are
empty; and where it has a function they are rows, from which the function's answers are computed as in a run.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from core.domain import Grid, Points
from core.grouping import Contributions
from core.input_checks import Checked
from core.noise import Noise
from core.plan import Plan
from core.rounds import Block, State, sections_of, total_in_memory
from core.secure_noise import SecureNoise
from core.statistics.found import Groups
from pipelines.errors import JobError
from pipelines.figures import Question
from pipelines.job.job import Job
from pipelines.job.subsamples_job import SubsamplesJob
from pipelines.simulation.made_up import MadeUp
from pipelines.simulation.measure import Measure, units_of
from pipelines.simulation.measures import MEASURES
from pipelines.simulation.shapes import records_for, unit_records
from transforms.key_labels import label_of

RUNS = 40
"""Runs of a simulation, each with noise of its own."""

MADE_UP = "made up"
"""The key of a private group that is made up."""

_LEAST, _MOST = 0.1, 0.9
"""Shares of the runs below the ends of what is told."""

_SEED = 20


class Setting(NamedTuple):
    """The public part of what is measured; see `pipelines.simulation.measure.Case`."""

    task: str
    grid: Grid
    params: Mapping[str, Any]
    relation: str
    bounds: Contributions


@dataclass(frozen=True)
class Measured:
    """What came out for one promise.

    Args:
        promise: its name.
        promised: its value; None where nothing is promised here.
        each_axis: whether it is promised for each axis. Figures are then parts of what is promised, at worst.
        least: the figure that 9 in 10 runs are not below.
        median: of the measured figures.
        most: the figure that 9 in 10 runs do not exceed.
        kept: share of the runs in which it held. Figures are those of runs that found an answer.
    """

    promise: str
    promised: float | None
    each_axis: bool
    least: float
    median: float
    most: float
    kept: float


@dataclass(frozen=True)
class Simulated:
    """What came out of runs on made-up records.

    Args:
        question: what was asked.
        made_up: the records.
        runs: how many runs there were.
        found: in how many of them something was found.
        figures: what came out for each promise that was measured.
        finding: the last state of the first run, with the counts of its checks.
    """

    question: Question
    made_up: MadeUp
    runs: int
    found: int
    figures: Sequence[Measured]
    finding: Any


def simulate(question: Question, made_up: MadeUp, runs: int = RUNS) -> Simulated:
    """Run a question so often on made-up records.

    Raises:
        JobError: what it asks for is not simulated, or its function cannot be imported.
    """
    job, plan = question.job, question.plan
    _check(job)
    points, bounds = _points(job, made_up), job.bounds or Contributions()
    setting = Setting(job.task, job.grid, vars(job.task_params), job.privacy.neighbors, bounds)
    truth = MEASURES.get(job.task, Measure)(setting, points)
    noises = [SecureNoise() for _ in range(runs)]
    findings = list(run_often(_of_one_group(job, plan), _block(job, points), noises))
    states = [each.state if isinstance(each, Checked) else each for each in findings]
    released = [state.first if isinstance(state, Groups) else state for state in states]
    unfound = [isinstance(state, Groups) and state.first is None for state in states]
    measured = [
        dict(truth.figures(found, plan.promises))
        for found, absent in zip(released, unfound, strict=True)
        if not absent
    ]
    names = [name for name in plan.promises if any(name in each for each in measured)]
    missing = sum(unfound)  # a group that is not found breaks no promise about its figures
    figures = [
        _summed(name, plan.promises[name], [each[name] for each in measured if name in each], missing)
        for name in names
    ]
    found = sum(state.result(job.grid) is not None for state in states)
    return Simulated(question, made_up, runs, found, figures, findings[0])


def run_often(plan: Plan, block: Block, noises: Sequence[Noise]) -> Iterator[State]:
    """Yield the last state of a run with each noise. All see the same records, so a round is summarized once.

    That holds for the first round, unless its sections draw; later ones depend on what was drawn.
    """
    first, start = plan.rounds[0], plan.start
    shared = None if sections_of(first) else total_in_memory(first, [block], start)
    for noise in noises:
        total = total_in_memory(first, [block], start, noise) if shared is None else shared
        state = first.release(total, start, noise)
        for round_ in plan.rounds[1:]:
            state = round_.release(total_in_memory(round_, [block], state, noise), state, noise)
        yield state


def _check(job: Job) -> None:
    """Check that made-up records can be those of a job.

    Raises:
        JobError: they cannot.
    """
    policy = job.privacy.policy
    if policy is not None and policy.constraints:
        raise JobError(
            "privacy.policy.constraints are counts of the real rows, which made-up rows do not have: leave "
            "them out to simulate."
        )


def _of_one_group(job: Job, plan: Plan) -> Plan:
    """Return a plan whose one round releases the group that is made up, and no empty ones."""
    if job.group_keys is None:
        return plan
    (round_,) = plan.rounds
    return replace(plan, rounds=(cast(Any, round_).of_one_group(),))


def _block(job: Job, points: Points) -> Block:
    """Return records as the rounds get them. Several records of a unit are one after the other."""
    ids = units_of(points, job.bounds or Contributions())
    outside = np.zeros(2 * job.grid.dimension, dtype=np.int64) if job.checks else None
    if job.group_keys is None:
        return Block(points, ids, outside)
    label = label_of([MADE_UP if time is None else "2000-01-01" for time in job.group_keys.truncate])
    return Block(points, ids, outside, np.zeros(len(points), np.int64), np.array([label.encode()]))


def _points(job: Job, made_up: MadeUp) -> Points:
    rng = np.random.default_rng(_SEED)
    if isinstance(job, SubsamplesJob):
        return _answers(job, made_up, rng)
    points = records_for(job.task, made_up.shape, made_up.rows, job.grid, rng)
    return points if job.grid.ball is None else job.grid.quantize(job.grid.place(points))


def _answers(job: SubsamplesJob, made_up: MadeUp, rng: np.random.Generator) -> Points:
    """Return the answers of the function to blocks of made-up rows within `input.bounds`, grid steps."""
    import pyarrow as pa

    from transforms.run_function import FunctionError, FunctionRunner
    from transforms.split_units import stream

    names = job.input.columns
    low, high = np.array(job.input.bounds or [(0.0, 1.0)] * len(names)).T
    rows = low + (high - low) * unit_records(made_up.shape, (made_up.rows, len(names)), rng)
    parts = np.array_split(rows, job.task_params.blocks)
    try:
        with FunctionRunner(job.untrusted()) as runner:
            batches = (pa.RecordBatch.from_arrays(list(map(pa.array, part.T)), list(names)) for part in parts)
            answers = [runner.run(stream(batch)) for batch in batches if len(batch)]
    except FunctionError as error:
        raise JobError(str(error)) from None
    known = [answer for answer in answers if answer is not None]
    return np.array(known, dtype=np.int64).reshape(len(known), job.grid.dimension)


def _summed(name: str, promised: Any, measured: Sequence[float], missing: int) -> Measured:
    """Return what came out for a promise. A figure below 0 is better than any promise, and counts as 0.

    Args:
        name: of the promise.
        promised: its value.
        measured: the figure of each run that has one.
        missing: runs without one, in which the promise held.
    """
    each_axis, measured = isinstance(promised, tuple), [max(0.0, value) for value in measured]
    allowed = 1.0 if each_axis else math.inf if promised is None else float(promised)
    return Measured(
        name,
        None if math.isinf(allowed) else allowed,
        each_axis,
        float(np.quantile(measured, _LEAST, method="lower")),
        float(np.median(measured)),
        float(np.quantile(measured, _MOST, method="higher")),
        float(np.mean([*(value <= allowed * (1 + 1e-9) for value in measured), *[True] * missing])),
    )
