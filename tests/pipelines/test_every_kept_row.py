"""Where units keep some of their rows, no text promises of units, or of all rows, what the kept ones hold.

A place that many units have been to may hold the kept row of none of them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pipelines.grouped_plan import describe_grouped, plan_job
from pipelines.job.groups import GroupedJob
from pipelines.job.job import check_job
from pipelines.plan import describe
from pipelines.report.report import render
from pipelines.tasks import TASKS
from tests.pipelines.answers.made_up import CASES, ROWS
from tests.pipelines.answers.test_every_answer import told_of
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes
from tests.pipelines.report.test_every_report import text_of, whole

GROUPS = {"columns": ["city"], "truncate": {}, "public_keys": 40}
CONTRIBUTED = {"groups": 1, "rows": 1, "clamp": "row"}

PROMISING = re.compile(
    r"at least|at most|within|probability|promise|fewer|enough|as long as|standard error|%|target|share|"
    r"smallest|nearly all|outside|mistakes|needs?\b|among|than|no units",
    re.IGNORECASE,
)
"""Words of sentences that state a bound, or how many are needed."""

TRUE = re.compile(r"\b(the truth|the true|(that of|to) the data)\b")
KEPT = re.compile(r"kept rows|keep rows|rows that (units keep|contributions keeps)")

OF_UNITS = (
    r".*, by (one random row of each unit|the last row of each unit|the rows that units keep)",  # headlines
    r"[Tt]he number of units is within [\d,]+ of the truth",  # whichever of its rows a unit keeps
    r"[Tt]he number of units( of each group| of any one group)? is within [\d,]+ of",
    r"(count|number of units)[ |]+[\d,]+ units|^[\d,]+ units \| standard error",
    r"An interval of values that holds the true quantile takes",
    r"the noisy number of units is not above 0",
    r"divided by the released number of units",  # and so are these, of `statistics`: a unit keeps a row
    r"about [\d,]+ units have a row (left out|moved)",  # counts of checks are of units
    r"noise may hide up to about [\d,]+ units of a column",
    r"the noisy numbers of units that have such values in each column",
    r"its standard error is up to sqrt\(p \(1 - p\) n\) units, where p is the counted share of n units",
    r"the number of units is (private|public)",
    r"in the units of the columns?",
    r"units[ |]+(about )?[\d,]+",  # facts and heads of tables
    r"grid points[ |]+units",
    r"someone who knows all other units",
)
"""What may be said of units, since it is true of them, or says how their rows became records."""


def limited(task: str) -> list[str]:
    """Return in which ways units may keep some of their rows."""
    ways = [keep for keep in ("one", "last") if keep in TASKS[task].keeps]
    return [*ways, "contributions"] if issubclass(TASKS[task].job or object, GroupedJob) else ways


LIMITED = [(task, way) for task in TASKS if not TASKS[task].subsamples for way in limited(task)]
"""A function gets all rows of a unit, and graphs have none."""


def releases(task: str, way: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield made-up releases of a task, in which units keep rows, with their tables, found and not found."""
    for name, (said, _, result) in CASES.items():
        grouped = said.get("group_by") is not None
        if said["task"] != task or (grouped and way != "contributions"):
            continue  # with `group_by`, units need contributions
        made = {**whole(name), "contributions": None}
        made["privacy"] |= {"unit": "who", "keep": None if way == "contributions" else way, "count": None}
        if way == "contributions":
            made |= {"contributions": CONTRIBUTED, "group_by": made.get("group_by", GROUPS)}
        if result is not None:
            yield made, ROWS.get(name)
        yield {**made, "result": None}, None


def misleading(texts: list[str]) -> list[str]:
    """Return the sentences that promise of units, or of the truth, what is true of kept rows."""
    sentences = dict.fromkeys(each for text in texts for each in re.split(r"(?<=\.)\s+|\n", text))
    return [sentence for sentence in sentences if _misleads(sentence)]


def _misleads(sentence: str) -> bool:
    rest = sentence
    for allowed in OF_UNITS:
        rest = re.sub(allowed, "", rest)
    if TRUE.search(rest) and not KEPT.search(rest):
        return True
    return bool(re.search(r"\bunits\b(?! keep)", rest) and PROMISING.search(rest))


def all_rows(sentences: list[str]) -> list[str]:
    """Return the promises that speak of rows, but not of the kept ones."""
    return [each for each in sentences if re.search(r"\brows\b", each) and not KEPT.search(each)]


@pytest.mark.parametrize(("task", "way"), LIMITED)
def test_no_answer_or_report_promises_of_units_what_holds_for_kept_rows(task: str, way: str) -> None:
    answers, made = TASKS[task].answers, list(releases(task, way))
    assert made
    for release, rows in made:
        page = text_of(render(release, rows)).replace("\n    ", " ")
        told = (
            re.sub(r"^  \w.*?(\[.*?\]).*", r"\1", line) for line in told_of(release, rows)
        )  # of marks, the legend
        assert misleading([*told, page]) == []
        assert all_rows([*answers.promises(release), str(answers.unpromised(release))]) == []


def texts_in(described: Any) -> Iterator[str]:
    """Yield all texts of a described plan."""
    if isinstance(described, str):
        yield described
    elif isinstance(described, Mapping | list | tuple):
        for each in described.values() if isinstance(described, Mapping) else described:
            yield from texts_in(each)


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize(("task", "way"), [*LIMITED, ("statistics", "private keys")])
def test_no_plan_promises_of_units_what_holds_for_kept_rows(
    task: str, way: str, epsilon: float, bench: Bench
) -> None:
    given = {**changes(task), "input.unit": "person", "privacy.epsilon": epsilon}
    if way in ("contributions", "private keys"):
        keys = [1, 2] if way == "contributions" else "private"
        given |= {"group_by": {"columns": ["w"], "keys": keys}, "contributions": {"groups": 1}}
        given |= {"input.checks": ...}
    else:
        given |= {"input.keep": way, **({"input.order": "when"} if way == "last" else {})}
    job = check_job(bench.changed(given))
    plan = plan_job(job, bytes(16))
    described = describe_grouped(job, plan) if job.apart else describe(job, plan)
    answers = TASKS[task].answers
    promises = [*answers.promises(described), str(answers.unpromised(described))]
    assert misleading([*texts_in(described), *promises]) == []
    assert all_rows(promises) == []
    assert "ll counts and promises are about the kept rows." in " ".join(described["notes"])


def test_every_task_of_rows_may_keep_some() -> None:
    assert {task for task, _ in LIMITED} == {
        task for task in TASKS if TASKS[task].keeps and not TASKS[task].subsamples
    }
