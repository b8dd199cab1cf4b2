"""The command `shoal`. Everything heavy is imported inside the commands, so that help comes at once."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="shoal",
    help="Find small clusters in personal data, with differential privacy, as Apache Beam pipelines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

JobFile = Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as privacy.epsilon=2."),
]
Runner = Annotated[str, typer.Option(help="FnApiRunner, FlinkRunner, DataflowRunner or PrismRunner.")]


@app.command()
def run(
    job: JobFile,
    beam_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- BEAM OPTIONS]", help="Any options of Beam, after --.")
    ] = None,
    overrides: Overrides = None,
    runner: Runner = "FnApiRunner",
) -> None:
    """Run a job and write its release. The same run id again returns the same release."""
    with _exit_codes():
        from pipelines.job import load_job

        checked = load_job(job, overrides or [])
        _summarize(_run_job()(checked, runner, beam_options or []), checked.output)


@app.command()
def plan(
    job: JobFile,
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show rounds, noise, promises and the smallest workable target. Reads no rows."""
    with _exit_codes():
        import json

        from rich.console import Console

        from pipelines.job import load_job
        from pipelines.plan import describe, make_plan, show
        from pipelines.release import finite

        checked = load_job(job, overrides or [])
        described = describe(checked, make_plan(checked, bytes(16)))
        if as_json:
            typer.echo(json.dumps(finite(described), indent=2, ensure_ascii=False))
        else:
            show(described, Console(width=None if sys.stdout.isatty() else 110, highlight=False))


@app.command()
def report(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="release.json, or the folder that holds it.")
    ],
) -> None:
    """Make report.html beside a release, from the release alone."""
    with _exit_codes():
        from pipelines.refusal import JobError
        from pipelines.release import RELEASE, REPORT, parse_release
        from pipelines.report import render
        from pipelines.storage import open_folder

        path = os.path.abspath(os.path.expanduser(release))
        folder = open_folder(os.path.dirname(path) if os.path.basename(path) == RELEASE else path)
        data = folder.read(RELEASE)
        if data is None:
            raise JobError(f"{folder.locate(RELEASE)} does not exist: give a release.json or its folder.")
        folder.replace(REPORT, render(parse_release(data, folder.locate(RELEASE))).encode())
        typer.echo(folder.locate(REPORT))


@app.command()
def schema() -> None:
    """Print the JSON schema of the job file."""
    with _exit_codes():
        import json

        from pipelines.job import schema as job_schema

        typer.echo(json.dumps(job_schema(), indent=2, ensure_ascii=False))


@app.command()
def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Where the demo's files go.")] = "demo-out",
) -> None:
    """Find the densest small region of the world's airports, privately."""
    with _exit_codes():
        from pipelines.demo import write_demo
        from pipelines.job import load_job

        checked = load_job(write_demo(out))
        _summarize(_run_job()(checked), checked.output)


def _run_job() -> Callable[..., dict[str, Any]]:
    """Import Beam, which logs while it is imported."""
    import logging

    logging.disable(logging.CRITICAL)
    from pipelines.run import run_job

    return run_job


def _summarize(release: dict[str, Any], output: str) -> None:
    from pipelines.words import summary

    for line in summary(release):
        typer.echo(line)
    typer.echo(f"\n{os.path.join(output, 'release.json')}\n{os.path.join(output, 'report.html')}")


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Say in a sentence what went wrong, with 2 where the job is wrong and 1 otherwise; never a traceback.

    Every error that is the job's is a ValueError with such a sentence, and is told apart by its name, so
    that nothing heavy is imported to say it. Of other errors only kind and place are said: their text may
    quote rows.
    """
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name in ("JobError", "InputError", "RunError"):
            typer.echo(f"shoal: {error}", err=True)
        else:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = (
                f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
            )
            typer.echo(f"shoal: unexpected {name} at {place}; nothing was released by this run.", err=True)
        raise typer.Exit(2 if name in ("JobError", "InputError") else 1) from None


def main() -> None:
    """Run the command."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the runner is what runs in parallel
    app()
