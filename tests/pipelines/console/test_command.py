"""How a command ends: in one sentence that holds nothing of a row, and with the code of what went wrong."""

import io
import json
from datetime import UTC, datetime

import pytest
import typer

from core.errors import ShoalError
from pipelines.console.command import exit_codes
from pipelines.console.events import Events
from pipelines.errors import JobError
from pipelines.ledger.ledger import LedgerRefusal

ROW = "12.5 Main Street"


def fails(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize(
    ("error", "says", "code", "event"),
    [
        (ValueError(ROW), "unexpected ValueError at test_command.py:{line}.", 1, "failed"),
        (KeyError(ROW), "unexpected KeyError at test_command.py:{line}.", 1, "failed"),
        (ShoalError("It failed."), "It failed.", 1, "failed"),
        (JobError("One \x1b.", "Two."), "One \\x1b.\nTwo.", 2, "failed"),
        (LedgerRefusal("Nothing is left."), "Nothing is left.", 3, "refused"),
    ],
)
def test_an_error_is_told_without_what_another_library_says_of_values(
    error: Exception,
    says: str,
    code: int,
    event: str,
    logged: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Errors of other libraries may quote a row, so only their type and the line are told."""
    stream = io.StringIO()
    events = Events(stream, lambda: datetime(2026, 1, 2, tzinfo=UTC)) if logged else None
    with pytest.raises(typer.Exit) as ended, exit_codes(events):
        fails(error)
    says = says.replace("{line}", str(fails.__code__.co_firstlineno + 1))
    assert ended.value.exit_code == code and ended.value.__cause__ is None
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == ("" if logged else f"shoal: {says}\n")
    if logged:
        told = json.loads(stream.getvalue())
        assert (told["event"], told["message"], told["exit_code"]) == (event, says, code)


def test_a_command_that_ends_by_itself_says_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, exit_codes():
        raise typer.Exit(7)
    assert ended.value.exit_code == 7 and capsys.readouterr() == ("", "")
