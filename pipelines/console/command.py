"""What every command does: it prints plain lines, and ends in one sentence and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from core.errors import ShoalError, kind_of
from pipelines.terminated import Terminated, was_asked

if TYPE_CHECKING:
    from pipelines.console.events import Events

Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the job, such as privacy.epsilon=2."),
]

_AGAIN = "Run the same command again; a run is finished with the same run id."


def print_lines(*lines: str) -> None:
    """Print lines of text that may contain control characters."""
    from pipelines.console.printable import printable

    for line in lines:
        typer.echo(printable(line))


def tell(text: str) -> None:
    """Print a sentence on standard error, unless it is closed."""
    with suppress(RuntimeError):
        typer.echo(f"shoal: {text}", err=True)


def tell_not_read(path: str, events: "Events | None" = None) -> None:
    """Tell how many links and files of other names the input at an absolute path has, which were left out."""
    from transforms.list_files import not_read

    text = not_read(path)
    if text is not None and events is not None and events.stream is not None:
        events.emit("not_read", "WARNING", message=text)
    elif text is not None:
        tell(text)


def with_beam(module: str) -> Any:
    """Import a module that imports Beam, which logs during its import.

    What an import makes stays until the end, so looking for garbage in it takes time, and finds none.
    """
    import gc
    import logging
    from importlib import import_module

    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def exit_codes(events: "Events | None" = None) -> Iterator[None]:
    """Report an error in one sentence, never as a traceback, and exit with the error's code.

    The text of a `ShoalError` contains nothing about any row. Other errors are reported by type and line
    only, because their message may contain row values.
    """
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        from pipelines.console.printable import error_text

        if was_asked():
            _end(f"Terminated. {_AGAIN}", 143, events)
        code = error.exit_code if isinstance(error, ShoalError) else 1
        text = error_text(error) if isinstance(error, ShoalError) else f"unexpected {kind_of(error)}."
        _end(text, code, events)
    except Terminated:
        _end(f"Terminated. {_AGAIN}", 143, events)
    except KeyboardInterrupt:
        _end(f"Interrupted. {_AGAIN}", 130, events)


def _end(text: str, code: int, events: "Events | None") -> NoReturn:
    """Report why the command ends, and exit with a code."""
    if events is not None and events.stream is not None:
        events.emit("refused" if code == 3 else "failed", "ERROR", message=text, exit_code=code)
    else:
        tell(text)
    raise typer.Exit(code) from None
