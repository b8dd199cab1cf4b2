"""Errors that are shown to a person as one sentence."""

import json
import re
from typing import ClassVar

_MARK = "shoal-error: "
_STEP = re.compile(r" \[while running '.*'\]$", re.MULTILINE)
"""What Beam appends to the text of an error, with the name of the step."""


class ShoalError(Exception):
    """An error whose text is one sentence for each problem. It contains nothing of any row."""

    exit_code: ClassVar[int] = 1
    """Exit code of a command that fails with this error."""
    worker_exit_code: ClassVar[int | None] = None
    """Exit code where a worker raised the error; None where it is `exit_code` too."""

    def of_worker(self) -> tuple[int, str]:
        """Return exit code and sentence for an error that a worker raised."""
        code = self.exit_code if self.worker_exit_code is None else self.worker_exit_code
        return code, _STEP.sub("", str(self))


def kind_of(error: BaseException) -> str:
    """Return the type of an error and the line that raised it. Its text may quote rows."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace else "?"
    return f"{type(error).__name__} at {place}"


def add_mark(error: ShoalError) -> ShoalError:
    """Add the mark that `error_in` reads to a worker's error, once, as a note, and return the error.

    An engine passes a worker's error to the submitter as the text of its traceback, which has the note. The
    text of the error itself, which people read, stays one sentence.
    """
    if not any(note.startswith(_MARK) for note in getattr(error, "__notes__", ())):
        error.add_note(f"{_MARK}{json.dumps(error.of_worker())}")
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
            return code, sentence
    return None  # the mark comes from elsewhere, for example from the name of a file


class InvalidValue(ShoalError, ValueError):
    """A value that is not allowed.

    Core names a value by its own field. The caller knows where the value was written, such as a key of the
    job file, and puts that place into `sentence`.

    Args:
        field: name of the field, such as `epsilon`; empty where the problem concerns all fields together.
        value: the value that is not allowed.
        allowed: which values are allowed, as a clause.
        problem: what is wrong with the value, as a predicate; by default "is" and the value.
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
