"""The command `shoal`. Everything heavy is imported inside the commands, so that help comes at once."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.errors import ShoalError
from pipelines.console.leave import leave_after
from pipelines.console.streams import steady_streams

if TYPE_CHECKING:
    from pipelines.console.events import Events

app = typer.Typer(
    name="shoal",
    help="Find small clusters in personal data, with differential privacy, as Apache Beam pipelines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ledger = typer.Typer(
    help="The ledger of a dataset: what may be spent on it in all, and every charge.", no_args_is_help=True
)
app.add_typer(ledger, name="ledger")

JobFile = Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file: gs://... or a local path.")]
LedgerFile = Annotated[str, typer.Argument(metavar="LEDGER.json", help="gs://... or a local path.")]
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all that can be checked; read no rows, spend nothing.")
    ] = False,
    json_logs: Annotated[
        bool, typer.Option("--json-logs", help="One JSON line an event on the standard error stream.")
    ] = False,
) -> None:
    """Run a job and write its release. The same run id again returns the same release."""
    from pipelines.console.events import Events
    from pipelines.ledger.ledger import now

    events = Events(sys.stderr if json_logs else None, now)
    with _exit_codes(events):
        from pipelines.job.job import load_job

        checked = load_job(job, overrides or [])
        events = events.of(run_id=checked.run_id, task=checked.task)
        with _exit_codes(events):
            runs = _with_beam("run")
            if dry_run and runs.delivery_of(checked).find() is not None:
                _say(f"Run {checked.run_id} is released already: it would return that release.")
            elif dry_run:
                runs.prepare_run(checked, runner, beam_options or [])
                _say(f"Run {checked.run_id} would start. No row was read, nothing spent or written.")
            else:
                release = runs.run_job(checked, runner, beam_options or [], events)
                _summarize(release, checked.output)


@app.command()
def plan(
    job: JobFile,
    overrides: Overrides = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show rounds, noise, promises and the smallest workable target. Reads no rows."""
    with _exit_codes():
        from pipelines.console.printable import as_json, finite, printable, terminal
        from pipelines.job.job import load_job
        from pipelines.plan import describe, make_plan, show

        checked = load_job(job, overrides or [])
        described = describe(checked, make_plan(checked, bytes(16)))
        if json:
            typer.echo(as_json(finite(described), indent=2))
        else:
            show(printable(described), terminal(sys.stdout.isatty()))


@app.command("check-function")
def check_function(job: JobFile, overrides: Overrides = None) -> None:
    """Try the function of sample_and_aggregate on made-up rows. Reads no rows, spends nothing."""
    with _exit_codes():
        from pipelines.job.job import load_job

        checks = _with_beam("check_function")
        findings = checks.check(load_job(job, overrides or []))
        _say(*checks.show(findings))
        if any(finding.problem for finding in findings):
            raise typer.Exit(2)


@app.command()
def report(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="release.json, or the folder that holds it.")
    ],
) -> None:
    """Make report.html beside a release, from the release alone."""
    with _exit_codes():
        from pipelines.errors import JobError
        from pipelines.release import RELEASE, REPORT, parse_release, read_rows
        from pipelines.report.report import render
        from pipelines.storage.locate import absolute, open_folder

        folder = open_folder(absolute(release).removesuffix(f"/{RELEASE}"))
        data = folder.read(RELEASE)
        if data is None:
            raise JobError(f"{folder.locate(RELEASE)} does not exist: give a release.json or its folder.")
        parsed = parse_release(data, folder.locate(RELEASE))
        rows = read_rows(folder)
        try:
            page = render(parsed, rows).encode()
        except Exception:
            raise JobError(
                f"{folder.locate(RELEASE)} was changed after its run: no report fits it."
            ) from None
        folder.replace(REPORT, page)
        _say(folder.locate(REPORT))


@app.command()
def screen(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="release.json of one_cluster or k_cover, or the folder that holds it."
        ),
    ],
    rows: Annotated[str, typer.Argument(metavar="INPUT", help="Parquet: a file, a folder or a glob.")],
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="A new folder. What it holds is private.")],
    beam_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- BEAM OPTIONS]", help="Any options of Beam, after --.")
    ] = None,
    runner: Runner = "FnApiRunner",
) -> None:
    """Split rows into those inside the released balls and those outside. Spends nothing."""
    with _exit_codes():
        _with_beam("screen").screen(release, rows, output, runner, beam_options or [])
        _say(os.path.join(output, "inside"), os.path.join(output, "outside"))


@app.command()
def schema() -> None:
    """Print the JSON schema of the job file."""
    with _exit_codes():
        from pipelines.console.printable import as_json
        from pipelines.job.job import schema as job_schema

        typer.echo(as_json(job_schema(), indent=2))


@app.command()
def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Where the demo's files go.")] = "demo-out",
) -> None:
    """Find the densest small region of the world's airports, privately."""
    with _exit_codes():
        from pipelines.demo import write_demo
        from pipelines.job.job import load_job

        checked = load_job(write_demo(out))
        _summarize(_with_beam("run").run_job(checked), checked.output)


@ledger.command("create")
def create(
    path: LedgerFile,
    epsilon: Annotated[float, typer.Option(help="What all runs may spend together.")],
    delta: Annotated[float, typer.Option(help="At least the sum of the runs' own.")],
    neighbors: Annotated[
        str, typer.Option(help="What it promises to hide: add_or_remove_one or replace_one.")
    ] = "add_or_remove_one",
    unit: Annotated[
        str | None, typer.Option(help="The column whose units it hides; without it, it hides rows.")
    ] = None,
    accountant: Annotated[
        str,
        typer.Option(
            help="How runs are composed: basic adds up their epsilons and deltas, and is best for few runs; "
            "renyi composes their draws, and admits many more runs that are small or draw Gaussian noise."
        ),
    ] = "basic",
) -> None:
    """Make a dataset's ledger, once."""
    with _exit_codes():
        from pipelines.ledger.ledger import create_ledger, new_ledger
        from pipelines.storage.locate import absolute

        fields = {"neighbors": neighbors, "unit": unit, "epsilon": epsilon, "delta": delta}
        create_ledger(absolute(path), new_ledger(fields, accountant))
        _say(path)


@ledger.command("show")
def show_ledger(
    path: LedgerFile,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what is left, and every charge."""
    with _exit_codes():
        from pipelines.console.printable import as_json, printable, terminal
        from pipelines.ledger.ledger import describe_ledger, read_ledger
        from pipelines.ledger.table import show_charges
        from pipelines.storage.locate import absolute

        described = describe_ledger(read_ledger(absolute(path)))
        if json:
            typer.echo(as_json(described, indent=2))
        else:
            show_charges(printable(described), terminal(sys.stdout.isatty()))


def _with_beam(module: str) -> Any:
    """Import a module of pipelines.run, and Beam with it, which logs while it is imported."""
    import logging
    from importlib import import_module

    logging.disable(logging.CRITICAL)
    return import_module(f"pipelines.run.{module}")


def _summarize(release: dict[str, Any] | None, output: str) -> None:
    from pipelines.report.summary import summary
    from pipelines.tasks import TASKS

    if release is None:
        _say(f"Submitted; the release will be in {output}.")
        return
    _say(*summary(release, TASKS[release["task"]].answers.answer(release, None)))
    _say("", os.path.join(output, "release.json"), os.path.join(output, "report.html"))


def _say(*lines: str) -> None:
    """Print lines that may hold names from elsewhere."""
    from pipelines.console.printable import printable

    for line in lines:
        typer.echo(printable(line))


@contextmanager
def _exit_codes(events: "Events | None" = None) -> Iterator[None]:
    """Say in a sentence what went wrong, with an exit code of its kind; never a traceback.

    The text of a `ShoalError` holds nothing of any row. Any other error is told by its kind and place alone,
    because its text may quote rows.
    """
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        from pipelines.console.printable import sentences

        code = error.exit_code if isinstance(error, ShoalError) else 1
        if isinstance(error, ShoalError):
            text = sentences(error)
        else:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = (
                f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
            )
            text = f"unexpected {type(error).__name__} at {place}."
        if events is not None and events.stream is not None:
            events.tell("refused" if code == 3 else "failed", "ERROR", message=text, exit_code=code)
        else:
            with suppress(RuntimeError):  # nobody hears it
                typer.echo(f"shoal: {text}", err=True)
        raise typer.Exit(code) from None
    except KeyboardInterrupt:
        typer.echo("shoal: Interrupted. The same command and run id finish a run that was started.", err=True)
        raise typer.Exit(130) from None


def main() -> None:
    """Run the command, and end the process."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the runner is what runs in parallel
    steady_streams()
    leave_after(app)
