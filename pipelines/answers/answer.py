"""What a task says of its release to a person, on the terminal and in the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from markupsafe import Markup
from numpy.typing import NDArray

Release = Mapping[str, Any]
"""A value as in release.json."""

Rows = Mapping[str, NDArray[Any]] | None
"""The columns of result.parquet; None where the answer is no table, or not at hand."""


@dataclass(frozen=True)
class Fact:
    """One figure of the answer: its name, its lines, and a note below."""

    name: str
    lines: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing as inline SVG, its caption, and the width that it deserves beside the others."""

    svg: Markup
    caption: str
    width: float = 1.0


@dataclass(frozen=True)
class Table:
    """A table of the answer: a title, headers and rows of text; numbers stand to the right."""

    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Answer:
    """An answer as a person reads it.

    Args:
        headline: what was found, in a sentence without a stop.
        lead: what that means.
        facts: its figures; also the lines on a terminal.
        figures: its drawings.
        tables: its tables.
        advice: where nothing was found, what may help: a phrase to start with and a sentence each.
    """

    headline: str
    lead: str
    facts: tuple[Fact, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()


class Answers(Protocol):
    """How a task speaks: a module of `pipelines/answers`."""

    ROUNDS: Mapping[str, str]
    """What each round finds out, by its name."""

    def promises(self, release: Release) -> list[str]:
        """Return the accuracy that a plan or a release promises, one sentence each."""

    def unpromised(self, release: Release) -> str | None:
        """Return what a person might expect to be promised and isn't, or None."""

    def answer(self, release: Release, rows: Rows) -> Answer:
        """Return the answer of a release."""
