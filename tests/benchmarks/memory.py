"""Measure the memory of every kind of job, and compare it with what its plan says (`pipelines.needs`).

The jobs are those of the generic tests, each task with every method and policy, on the finest domain that it
takes; asked alone, with units, by three and by 300 public groups, and by private ones; and several questions
together. Each runs on one and
on six million made-up rows, in a process of its own, as `shoal cost` runs them. `--check` fails where a run
takes over a tenth more than its plan says, unless the plan names something that grows. What waited in
temporary files is shown, too. Run by `make bench-memory`: about two hours.
"""

import argparse
import copy
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from core.errors import InvalidValue
from pipelines.errors import JobError
from pipelines.grouped_plan import plan_job
from pipelines.job.job import Job, check_job, check_several
from pipelines.job.questions import QuestionsJob
from pipelines.joint_plan import planned_as
from pipelines.needs import needs
from pipelines.run.cost import try_rows
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import (
    JOINT,
    JOINT_MORE,
    JOINT_POLICIES,
    jobs_of,
    joint_job,
    shared_drafts,
)

ROWS = (1_000_000, 6_000_000)
EDGES = (500_000, 3_000_000)
SLOW = 60.0
"""Seconds of the processor on the smaller rows from which on a job is not run on the larger ones."""

TOLERANCE = 1.1
_STEPS = (2.0**-30, 2.0**-20, None)
_NODES = 200_000
_MORE: dict[str, dict[str, Any]] = {
    "alone": {},
    "units": {"unit": "u"},
    "3-groups": {"keys": ["a", "b", "c"]},
    "300-groups": {"keys": [f"k{i}" for i in range(300)]},
    "private-groups": {"keys": "private"},
}


@dataclass(frozen=True)
class Measured:
    """A job, and the most memory that its plan says a run takes.

    Args:
        name: of the setting, and how it is asked.
        job: the job.
        most: MB.
        growing: what the plan says grows beside that.
    """

    name: str
    job: Job | QuestionsJob
    most: float
    growing: str


def jobs(tasks: list[str]) -> Iterator[Measured]:
    """Yield one job of each kind: of all that have the same task, rounds, columns, groups and units."""
    seen = set()
    for task in tasks:
        for name, raw in jobs_of(task):
            if raw["params"].get("noise", "auto") != "auto" or "+counts" in name:
                continue
            for how, changes in _MORE.items():
                if TASKS[task].subsamples and how == "300-groups":  # a process for each block of each group
                    continue
                found = _finest(_asked(raw, changes))
                if found is None:
                    continue
                job, plan, step = found
                kinds = [type(getattr(round_, "round_", round_)).__name__ for round_ in plan.rounds]
                measures = str(job.params) if task == "statistics" else ""
                keys = None if job.group_keys is None else job.group_keys.labels
                key = (task, str(kinds), how, job.input.columns, measures, step, job.unit, keys is None)
                if key not in seen:
                    seen.add(key)
                    own = needs([(job, plan)])
                    groups = len(keys or ()) if job.apart else 1
                    more = own["for_each_group_mb"] * (groups - 1)
                    by_row = own["for_each_row_bytes"]
                    most = own["memory_mb"] + (more if by_row is None else min(more, by_row * ROWS[-1] / 1e6))
                    yield Measured(f"{name}-{how}", job, most, "; ".join(own["growing"]))


def several() -> Iterator[Measured]:
    """Yield the jobs of several questions, alone and with units, each question on its finest domain."""
    for (name, tasks), unit in itertools.product(JOINT.items(), ({}, {"unit": "u"})):
        relation = "replace_one" if name in JOINT_POLICIES else "add_or_remove_one"
        raw = joint_job(tasks, relation, JOINT_MORE.get(name, {}))
        if unit.items() <= raw["input"].items() and unit:
            continue  # it has units anyway
        raw["input"] |= unit
        raw["privacy"]["policy"] = JOINT_POLICIES.get(name)
        for question in raw["questions"].values():
            question["checks"], domain, coarse = 0.0, question["domain"], question["domain"]["step"]
            for domain["step"] in (*_STEPS[:-1], coarse):
                if _needs_of(raw) is not None:
                    break
        own = _needs_of(raw)
        if own is not None:
            named = f"questions-{name}{'-units' if unit else ''}"
            yield Measured(named, check_several(raw), own["memory_mb"], "; ".join(own["growing"]))


def _needs_of(raw: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a job of several questions needs; None where it is refused."""
    try:
        found: dict[str, Any] = planned_as(check_several(raw))[1]["needs"]
    except (JobError, InvalidValue):
        return None
    return found


def _asked(raw: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    job = copy.deepcopy(raw)
    if "unit" in more:
        job["input"]["unit"] = more["unit"]
    if "keys" in more:
        job["group_by"] = {"columns": ["key"], "keys": more["keys"]}
        job["privacy"]["epsilon"] = max(3.0, job["privacy"]["epsilon"])
    return job


def _finest(raw: dict[str, Any]) -> tuple[Job, Any, float | None] | None:
    """Return a job on the finest domain that it takes, with its plan; None where it takes none."""
    for step in _STEPS:
        job = copy.deepcopy(raw)
        domain = job.get("domain", {})
        if job["task"] in ("triangles", "mst_cost"):
            weights = [1000] * (len(domain["upper"]) - 2)
            domain |= {"upper": [_NODES, _NODES, *weights], "step": 1}
        elif step is not None and "geography" not in domain and domain:
            domain["step"] = step if domain["upper"][0] <= 2 else 1
        try:
            checked = check_job(job)
            return checked, plan_job(checked, bytes(16)), step
        except (JobError, InvalidValue):
            continue
    return None


def measure(found: list[Measured], sizes: list[int], console: Console) -> list[str]:
    """Run the jobs, and print their memory; return the names of those that took more than their plans say.

    Args:
        found: the jobs.
        sizes: two numbers of rows, or none for the usual ones.
        console: where to print.
    """
    headers = "job", "MB, fewer rows", "more rows", "plan says at most", "and besides", "on disk, bytes a row"
    table = Table(*headers, title="Memory")
    over = []
    for each in found:
        used: list[float] = []
        disk = 0.0
        edges = isinstance(each.job, Job) and each.job.task in ("triangles", "mst_cost")
        usual = EDGES if edges else ROWS
        for rows in sizes or usual:
            try:
                usage = try_rows(each.job, rows)
            except JobError as error:
                console.print(f"{each.name}: {error}")
                break
            used.append(usage.memory / 1e6)
            disk = usage.disk / rows
            said = f"{usage.processor:.1f} s, {used[-1]:.0f} MB, {disk:.1f} bytes a row on disk"
            console.print(f"{each.name}: {rows:,} rows, {said}")
            if usage.processor > SLOW:
                break
        if used and max(used) > TOLERANCE * each.most and not each.growing:
            over.append(each.name)
        shown = [f"{mb:.0f}" for mb in used] + ["not run"] * (2 - len(used))
        table.add_row(each.name, *shown, f"{each.most:.0f}", each.growing, f"{disk:.1f}")
    console.print(table)
    return over


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=[], help="by default all, and several questions")
    parser.add_argument("--rows", nargs=2, type=int, default=[], help="by default 1 and 6 million")
    parser.add_argument("--only", default="", help="a part of the names of jobs")
    parser.add_argument("--check", action="store_true", help="fail where a run takes more than its plan says")
    given = parser.parse_args()
    with shared_drafts():
        kinds = itertools.chain(jobs(given.tasks or list(TASKS)), () if given.tasks else several())
        found = [each for each in kinds if given.only in each.name]
    over = measure(found, given.rows, Console(width=150))
    if given.check and over:
        sys.exit(f"More memory than their plans say: {'; '.join(over)}.")


if __name__ == "__main__":
    main()
