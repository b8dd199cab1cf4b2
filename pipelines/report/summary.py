"""Say a release in a few lines."""

from collections.abc import Mapping
from typing import Any

from pipelines.answers.answer import Answer, Fact
from pipelines.answers.text import number


def summary(release: Mapping[str, Any], answer: Answer) -> list[str]:
    """Return a release in a few lines for a terminal."""
    privacy = release["privacy"]
    spent = f"epsilon {number(privacy['epsilon'])}, delta {number(privacy['delta'])}, {privacy['neighbors']}"
    if release["result"] is None:
        said = ["Nothing was found, and that is an answer: it is as private as any other, and as dear."]
        facts: tuple[Fact, ...] = (Fact("spent", (spent,)),)
    else:
        said, facts = [], (*answer.facts, Fact("spent", (spent,)))
    width = max(len(fact.name) for fact in facts) + 2
    return said + [
        f"{fact.name:<{width}}{', '.join(fact.lines)}{f' ({fact.note})' if fact.note else ''}"
        for fact in facts
    ]
