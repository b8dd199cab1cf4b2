"""The plan of a task: what it will do, known before any row is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from core.budget import Mechanism, Spend
from core.domain import Grid
from core.draws import Charged, charged
from core.errors import InvalidValue
from core.held import Held, held_by
from core.marks import Mark
from core.policy import Policy
from core.rounds import State
from core.tightness import Tightness

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LEAST_FAILURE = 1e-100  # a division by a smaller failure probability may overflow to infinity


def check_failure(failure: float) -> None:
    """Check a task's probability that its promises fail.

    Raises:
        InvalidValue: the probability is out of range.
    """
    if not _LEAST_FAILURE <= failure < 1:
        raise InvalidValue("failure", failure, f"it must be at least {_LEAST_FAILURE} and below 1")


class Finding(Protocol):
    """The last state of a task."""

    def result(self, grid: Grid) -> "DataclassInstance | None":
        """Return the answer in data units, a dataclass of JSON values; None where nothing was found."""


@runtime_checkable
class Tabular(Finding, Protocol):
    """The last state of a task whose answer is a table."""

    def table(self, grid: Grid) -> Mapping[str, NDArray[Any]] | None:
        """Return the columns of the table, in data units; None where nothing was found."""

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """Return which columns are on an axis, or lengths: the mark and the number of the axis, by name."""


class InParts(Finding, Protocol):
    """A part of the last state of a task whose last round is a `core.rounds.RoundInParts`.

    Whole numbers in its `result` add up over the parts; all else there is the same in every part.
    """

    def columns(self, grid: Grid) -> Mapping[str, NDArray[Any]]:
        """Return the columns of the part's table, in data units; the same ones where it has no row."""

    def column_marks(self, grid: Grid) -> Mapping[str, tuple[Mark, int]]:
        """See `Tabular.column_marks`."""


@dataclass(frozen=True)
class Chosen:
    """Why a plan has its method.

    Args:
        best: the method of the smallest error.
        compared_by: what that error measures, in words.
        errors: the error of every method that serves the setting, by name; infinite where it promises none.
        asked: name of the parameter that named the method; None where the best method was taken.
    """

    best: str
    compared_by: str
    errors: Mapping[str, float]
    asked: str | None = None


@dataclass(frozen=True)
class Plan:
    """Rounds, noise and promises of one task, made from public parameters alone.

    Args:
        method: the method that will run.
        rounds: the rounds, in order.
        start: state before the first round.
        spend: what all draws of the rounds spend together.
        promises: name to value, each true with probability 1 - failure; see the task's `Promises`.
        failure: probability that any promise fails. What a release itself bounds, such as the counts of
            rectangles, may fail with as much once more.
        smallest_target: smallest `target` that this budget serves, or None.
        alternatives: the other methods and what they promise.
        chosen: why the plan has this method.
        notes: sentences for the person who reads the plan.
        tightness: how near errors come to each promised bound, by its name.
        hides: what the release hides, in words, if that is less than the neighbor relation says; else None.
        policy: the policy whose secret pairs are all that the release hides; None where it hides every pair
            of values, whatever policy was asked for.
    """

    method: str
    rounds: tuple[Charged, ...]
    start: State
    spend: Spend
    promises: Mapping[str, Any]
    failure: float
    smallest_target: int | None = None
    alternatives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    chosen: Chosen | None = None
    notes: tuple[str, ...] = ()
    tightness: Mapping[str, Tightness] = field(default_factory=dict)
    hides: str | None = None
    policy: Policy | None = None

    @property
    def held(self) -> Held:
        """What the private stage holds at work."""
        return held_by(self.rounds)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Every draw of noise that the rounds hold."""
        return charged(self.rounds)
