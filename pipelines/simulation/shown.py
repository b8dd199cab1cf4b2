"""Show what a simulation gave: what was promised beside what came out, and the answer of its first run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core.statistics.found import Groups
from pipelines.answers.text import confidence, counted, number
from pipelines.figures import Question, questions
from pipelines.job.job import Job
from pipelines.job.questions import QuestionsJob
from pipelines.release import answered, draft_release, made_table, with_checks
from pipelines.report.summary import summary
from pipelines.simulation.made_up import MadeUp
from pipelines.simulation.simulate import Simulated, simulate
from pipelines.tasks import TASKS

SAYS = (
    "These {rows} {many} are made up ({shape}). The noise is real. Nothing was read, spent or written. On "
    "rows of another shape errors are others; what is promised holds for any."
)


def simulate_job(job: Job | QuestionsJob, made_up: MadeUp) -> dict[str, Any]:
    """Return as JSON values what runs of every question of a job on made-up rows gave.

    Raises:
        JobError: the job cannot be planned, or is not simulated.
    """
    found = [describe(simulate(question, made_up)) for question in questions(job)]
    return {"rows": made_up.rows, "shape": made_up.shape, "simulated": found}


def describe(simulated: Simulated) -> dict[str, Any]:
    """Return a simulation as JSON values, with the answer of its first run as a release has it."""
    question, runs = simulated.question, simulated.runs
    draft, finding = with_checks(draft_release(question.job, question.plan), simulated.finding)
    if isinstance(finding, Groups) and finding.first is not None:
        draft, finding = {**draft, "group_by": None}, finding.first
    release = {**draft, **answered(finding, question.job.grid)}
    told = {**release, "rows": None}
    lines = summary(
        told, TASKS[release["task"]].answers.answer(told, made_table(finding, question.job.grid) or None)
    )
    return {
        "question": question.name,
        "task": release["task"],
        "method": release["method"],
        "accuracy": release["accuracy"],
        "runs": runs,
        "found": simulated.found,
        "figures": [_figure(question, each) for each in simulated.figures],
        "outcome": release["outcome"],
        "result": release["result"],
        "text": lines[: lines.index("") if "" in lines else None],
        "many": _many(question.job, simulated.made_up.rows, counted(release).many),
    }


def _many(job: Job, made_up: int, many: str) -> str:
    """Return what was made up: records, or several rows of each unit; and of one group."""
    if job.bounds is not None and job.bounds.rows > 1:
        many = f"rows of {-(-made_up // job.bounds.rows):,} {many}"
    return many if job.group_keys is None else f"{many} of one group"


def _figure(question: Question, each: Any) -> dict[str, Any]:
    """Return what came out for a promise, as numbers and as texts."""

    def text(value: float | None) -> str:
        if value is not None and math.isinf(value):
            return "not found"
        share = value is not None and each.each_axis
        return f"{number(100 * (value or 0), 3)}% of it" if share else question.shown(each.promise, value)

    return {
        **vars(each),
        "shown": ["each axis" if each.each_axis else text(each.promised), text(each.median), text(each.most)],
    }


def show(simulated: Mapping[str, Any], console: Console) -> None:
    """Print what `simulate_job` returned."""
    for each in simulated["simulated"]:
        if each["question"]:
            console.print()
            console.rule(Text(each["question"], "bold"), align="left")
        console.print(
            SAYS.format(rows=f"{simulated['rows']:,}", many=each["many"], shape=simulated["shape"]),
            f"{each['found']} of {each['runs']} runs of {each['task']} by {each['method']} found an answer.",
        )
        if each["figures"]:
            console.print(_table(each))
        else:
            console.print("No promise of this task is measured on such rows.")
        console.print("The first run:")
        for line in each["text"]:
            console.print(f"  {line}")


def _table(each: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headers: Sequence[str] = (
        f"figure (probability {confidence(each)})",
        "promised",
        "median run",
        "9 in 10 runs within",
        "held in",
    )
    for header in headers:
        table.add_column(header, justify="left" if header.startswith("figure") else "right")
    for figure in each["figures"]:
        table.add_row(figure["promise"], *figure["shown"], f"{number(100 * figure['kept'])}%")
    return table
