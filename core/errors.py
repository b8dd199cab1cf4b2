"""Errors that are told to a person in one sentence."""

import json
from typing import ClassVar

_MARK = "shoal-error: "
_STEP = " [while running "  # what Beam appends to the text of an error, with the name of the step


class ShoalError(Exception):
    """An error whose text is one sentence for each problem, fit to be shown: it holds nothing of any row."""

    exit_code: ClassVar[int] = 1
    """Exit code of a command that fails with this error."""
    worker_exit_code: ClassVar[int | None] = None
    """Exit code where a worker met the error; None where it is the same."""

    def of_worker(self) -> tuple[int, str]:
        """Return exit code and sentence, where a worker met the error."""
        code = self.exit_code if self.worker_exit_code is None else self.worker_exit_code
        return code, str(self)


def add_mark(error: ShoalError) -> ShoalError:
    """Add what `error_in` reads to the text of an error of a worker, and return it.

    Engines hand an error from a worker to the submitter as text; Beam makes a new one of it on the way.
    """
    error.args = (f"{error} {_MARK}{json.dumps(error.of_worker())}",)
    return error


def error_in(text: str) -> tuple[int, str] | None:
    """Return exit code and sentence of the first marked error in the text of a traceback, or None."""
    _, found, rest = text.partition(_MARK)
    if not found:
        return None
    try:
        marked = json.JSONDecoder().raw_decode(rest)[0]
    except ValueError:  # an engine cut the text
        return None
    match marked:
        case [int(code), str(sentence)]:
            return code, sentence.split(_STEP)[0]
    return None  # the mark is another's, such as the name of a file


class InvalidValue(ShoalError, ValueError):
    """A value that can't be worked with.

    Core knows values by the names of its own fields; whoever asked for the value knows where it stood, and
    names that place by `sentence`.

    Args:
        field: name of the value, such as `epsilon`; empty for all of what is checked.
        value: what it is.
        allowed: what it may be instead, as a clause.
        problem: what is wrong with it, as a predicate; by default that it is this value.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, field: str, value: object, allowed: str, problem: str | None = None) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.problem = problem or f"is {value}"
        super().__init__(field, value, allowed, problem)

    def sentence(self, place: str) -> str:
        """Return what is wrong in one sentence, with `place` for the name of the field."""
        return f"{place} {self.problem}: {self.allowed}."

    def __str__(self) -> str:
        return self.sentence(self.field)
