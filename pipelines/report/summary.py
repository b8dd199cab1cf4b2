"""Summarize a release for a terminal."""

from collections.abc import Mapping
from typing import Any

from pipelines.answers.answer import Answer, Fact
from pipelines.answers.checks import check_facts
from pipelines.answers.text import number
from pipelines.grouped_release import answers_by_group
from pipelines.job.questions import QUESTIONS
from pipelines.joint_release import answers_of
from pipelines.tasks import TASKS

_MOST_GROUPS = 30
"""Groups that a terminal shows."""


def summary_of(release: Mapping[str, Any]) -> list[str]:
    """Return the lines of the summary of a release, with a heading for each of several questions."""
    if "groups" in release:
        return _of_groups(release)
    if release["task"] != QUESTIONS:
        return summary(release, TASKS[release["task"]].answers.answer(release, None))
    lines = []
    for name, one in answers_of(release).items():
        lines += [f"{name}:", *(f"  {line}" for line in summary_of(one)), ""]
    privacy = release["privacy"]
    return [
        *lines,
        f"All questions together spent epsilon {number(privacy['epsilon'])}, "
        f"delta {number(privacy['delta'])}, {privacy['neighbors']}.",
    ]


def _of_groups(release: Mapping[str, Any]) -> list[str]:
    """Return a line for each of the first groups."""
    answers, privacy = TASKS[release["task"]].answers, release["privacy"]
    groups = answers_by_group(release, None)
    lines = [f"{name}: {answers.answer(one, None).headline}" for name, one, _ in groups[:_MOST_GROUPS]]
    more = len(groups) - len(lines)
    return [
        *lines,
        *([f"... and {more:,} more groups"] if more else []),
        "",
        f"All groups together spent epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}, "
        f"{privacy['neighbors']}.",
    ]


def summary(release: Mapping[str, Any], answer: Answer) -> list[str]:
    """Return the lines of the summary."""
    privacy = release["privacy"]
    spent = f"epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}, {privacy['neighbors']}"
    if release["result"] is None:
        lines = [f"{answer.headline}. This outcome is protected like any other and uses the same budget."]
        facts: tuple[Fact, ...] = (*check_facts(release), Fact("spent", (spent,)))
    else:
        lines, facts = [], (*answer.facts, *check_facts(release), Fact("spent", (spent,)))
    width = max(len(fact.name) for fact in facts) + 2
    return lines + [
        f"{fact.name:<{width}}{', '.join(fact.lines)}{f' ({fact.note})' if fact.note else ''}"
        for fact in facts
    ]
