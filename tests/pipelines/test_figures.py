"""Figures of plans by name: what stands for a promise, and what is typical of it."""

import math
from typing import Any

import pytest

from pipelines.errors import JobError
from pipelines.figures import TYPICAL, UNITS, find_question, names_of, plan_raw
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import LINE, changes
from tests.pipelines.test_nearest import QUESTION, QUESTIONS_JOB


@pytest.mark.parametrize(
    ("value", "figure"),
    [(3, 3.0), (None, None), (math.inf, None), ([1, 5.0, 2], 5.0), ([], None), ([7.0], 7.0)],
)
def test_of_a_promise_for_each_axis_the_worst_counts(value: Any, figure: float | None) -> None:
    """And one that is infinite is none."""
    (question,) = plan_raw(changed_job(changes("median")))
    assert question.figures({"rank_error": value})["rank_error"] == figure


def test_every_figure_that_is_explained_is_promised_by_some_task() -> None:
    known = {name for task in TASKS for name in names_of(task)}
    assert known >= {*TYPICAL, *TYPICAL.values(), *UNITS}


@pytest.mark.parametrize(
    ("task", "promise", "typical"),
    [
        ("quantiles", "rank_error", "typical_rank_error"),
        ("histogram", "cell_error", "standard_error"),
        ("ranges", "cell_error", "standard_error"),
        ("cdf", "range_error", "range_standard_error"),
    ],
)
def test_the_typical_figure_of_a_promise_is_below_it(task: str, promise: str, typical: str) -> None:
    """Twice as large and more, as a bound that holds 9 in 10 times is."""
    (question,) = plan_raw(changed_job(changes(task)))
    figures, of = question.figures(), TYPICAL[promise]
    assert of == typical and 2 * figures[of] < figures[promise]


def test_a_figure_of_each_group_is_that_of_a_job_of_one_group() -> None:
    grouped = {**changes("median"), "group_by": {"columns": ["city"], "keys": ["a", "b"]}}
    (question,) = plan_raw(changed_job({**grouped, **LINE}))
    assert question.job.group_by is None and question.job.privacy.epsilon <= 1.0
    (alone,) = plan_raw(changed_job({**changes("median"), **LINE}))
    assert question.figures() == alone.figures()


def test_a_figure_of_no_question_is_told_with_the_nearest() -> None:
    planned = plan_raw({**QUESTIONS_JOB, "questions": {"lowest": QUESTION, "high": QUESTION}})
    assert find_question(planned, "high.rank_error").name == "high"
    says = r"'rank_error' is no promise of this job \(did you mean lowest\.rank_error\?\): its promises"
    with pytest.raises(JobError, match=says):
        find_question(planned, "rank_error")
    with pytest.raises(JobError, match=r"'high\.rank_eror' .*\(did you mean high\.rank_error\?\)"):
        find_question(planned, "high.rank_eror")
