"""The promised figures of a planned job by name, as numbers that can be compared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from core.groups import GroupedPlan
from core.nearest import meant, nearest
from core.plan import Plan
from pipelines.answers.text import number
from pipelines.dates import Span, as_steps, as_text
from pipelines.errors import InvalidValue, JobError, quoted
from pipelines.grouped_plan import plan_job
from pipelines.job.groups import GroupsJob
from pipelines.job.job import Job, check_raw
from pipelines.job.questions import QuestionsJob
from pipelines.joint_plan import make_joint_plan, questions_of
from pipelines.tasks import TASKS

TYPICAL = {
    "rank_error": "typical_rank_error",
    "cell_error": "standard_error",
    "range_error": "range_standard_error",
}
"""The figure that states how large errors are as a rule, for a promise that bounds them."""

UNITS = {
    "mean_error": "times half of the range of a column, over the number of rows, it is the error of a mean",
    "sum_error": "times the largest absolute value of the column, it is the error of a sum",
    "errors": "to which a multiple of the spread of the answers comes, which the plan names",
}
"""What a promise is counted in, where that is neither rows nor the unit of a column, or what comes to it."""


@dataclass(frozen=True)
class Question:
    """A question of a planned job, or the whole of a job of one.

    Args:
        name: of the question; empty where the job has one.
        job: the question as a job of its own, with its part of the budget; of one group, where the job is
            asked about each group by itself.
        plan: its plan.
    """

    name: str
    job: Job
    plan: Plan

    @property
    def failure(self) -> float:
        """Probability with which a promise may fail."""
        return self.plan.failure

    def named(self, figure: str) -> str:
        """Return the name of a figure among those of all questions."""
        return f"{self.name}.{figure}" if self.name else figure

    def figures(self, promises: Mapping[str, Any] | None = None) -> dict[str, float | None]:
        """Return figures by name: in data units, in steps where the domain has dates; None if not promised.

        Of a promise for each axis it is the largest.

        Args:
            promises: those of a method; by default of the chosen one.
        """
        given = self.plan.promises if promises is None else promises
        found = {name: given.get(name) for name in names_of(self.job.task)}
        return {self.named(name): _largest(value) for name, value in found.items()}

    def shown(self, figure: str, value: float | None) -> str:
        """Return a figure as text; a distance between dates as a duration."""
        if value is None:
            return "none"
        times, name = self.job.grid.times, figure.rpartition(".")[2]
        text = as_text(TASKS[self.job.task].promises, {name: value}, times)[name]
        return number(Span(value, times) if times is not None and isinstance(text, str) else value)

    def read(self, figure: str, text: str) -> float:
        """Return the number that a text of the command line gives to a figure.

        Raises:
            JobError: it is none.
        """
        times, name = self.job.grid.times, figure.rpartition(".")[2]
        try:
            value = as_steps(TASKS[self.job.task].promises, {name: text}, times, figure)[name]
            found = float(value)
        except InvalidValue as error:
            raise JobError(f"--for {error.sentence(figure)}") from None
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            share = ""
            if text.rstrip().endswith("%"):
                share = " A plan reads no rows, so it knows no shares: guess of how many rows yours is."
            raise JobError(f"--for {figure}={text}: give a number, such as --for {figure}=50.{share}")
        return found


def _largest(value: Any) -> float | None:
    if isinstance(value, Sequence):
        return max(map(float, value), default=None)
    return None if value is None or math.isinf(value) else float(value)


def names_of(task: str) -> list[str]:
    """Return the names of the figures of a task."""
    return [field.name for field in fields(TASKS[task].promises)]


def plan_raw(raw: dict[str, Any]) -> list[Question]:
    """Check and plan a job given as a mapping; return its questions.

    Raises:
        JobError: it cannot be planned.
    """
    return questions(check_raw(raw))


def questions(job: Job | QuestionsJob) -> list[Question]:
    """Plan a job; return its questions.

    Raises:
        JobError: it cannot be planned.
    """
    if not isinstance(job, QuestionsJob):
        return [_question("", job, plan_job(job, bytes(16)))]
    plan = make_joint_plan(job, {name: bytes(16) for name in job.jobs})
    return [_question(name, own, each) for name, (own, each) in questions_of(job, plan).items()]


def _question(name: str, job: Job, plan: object) -> Question:
    if isinstance(plan, GroupedPlan) and isinstance(job, GroupsJob):
        return Question(name, job.of_each(plan.budget), plan.each)
    if not isinstance(plan, Plan):
        raise TypeError(f"{type(plan).__name__} is not the plan of one question")
    return Question(name, job, plan)


def find_question(planned: Sequence[Question], figure: str) -> Question:
    """Return the question that a figure is of.

    Raises:
        JobError: none has it.
    """
    known = {question.named(name): question for question in planned for name in names_of(question.job.task)}
    if figure not in known:
        task = planned[0].job.task if len(planned) == 1 else "this job"
        same = [name for name in known if name.endswith(f".{figure}")]
        asked = (
            f"{quoted(figure)} is no promise of {task}{meant(same[0] if same else nearest(figure, known))}"
        )
        raise JobError(f"{asked}: its promises are {', '.join(known)}.")
    return known[figure]
