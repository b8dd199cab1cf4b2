"""Errors that are told to a person in one sentence."""

from typing import ClassVar


class ShoalError(Exception):
    """An error whose text is one sentence for each problem, fit to be shown: it holds nothing of any row."""

    exit_code: ClassVar[int] = 1
    """Of the command that fails with it."""


class InvalidValue(ShoalError, ValueError):
    """A value that can't be worked with.

    Core knows values by the names of its own fields; whoever asked for the value knows where it stood, and
    names that place by `sentence`.

    Args:
        field: name of the value, such as `epsilon`.
        value: what it is.
        allowed: what it may be instead, as a clause.
        problem: what is wrong with it, as a predicate; by default that it is this value.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, field: str, value: object, allowed: str, problem: str | None = None) -> None:
        super().__init__(field, value, allowed, problem)
        self.field = field
        self.value = value
        self.allowed = allowed
        self.problem = problem or f"is {value}"

    def sentence(self, place: str) -> str:
        """Return what is wrong in one sentence, with `place` for the name of the field."""
        return f"{place} {self.problem}: {self.allowed}."

    def __str__(self) -> str:
        return self.sentence(self.field)
