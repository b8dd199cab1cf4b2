"""The command `shoal`. Each command imports its heavy modules itself, so that --help is fast."""

import os
import sys
from contextlib import closing
from typing import Annotated, Any

import typer

from core.errors import ShoalError
from pipelines.console.command import Overrides, exit_codes, print_lines, tell, tell_not_read, with_beam
from pipelines.console.exit import exit_after
from pipelines.console.progress import Progress
from pipelines.console.streams import guard_streams
from pipelines.describe.command import describe
from pipelines.ledger.commands import ledger
from pipelines.terminated import listen, was_asked

app = typer.Typer(
    name="shoal",
    help="Answer questions about personal data with differential privacy, as Apache Beam pipelines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(ledger, name="ledger")
app.command()(describe)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"shoal {version('shoal')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and exit."
        ),
    ] = False,
) -> None:
    pass


_DOCTYPE = len(b"<!doctype html>")


JobFile = Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file: a URL or a local path.")]
Runner = Annotated[str, typer.Option(help="FnApiRunner, FlinkRunner, DataflowRunner or PrismRunner.")]


@app.command()
def run(
    job: JobFile,
    beam_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- BEAM OPTIONS]", help="Options of Beam, after --.")
    ] = None,
    overrides: Overrides = None,
    runner: Runner = "FnApiRunner",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the job without reading rows or spending budget.")
    ] = False,
    json_logs: Annotated[
        bool, typer.Option("--json-logs", help="Write one JSON line per event to standard error.")
    ] = False,
) -> None:
    """Run a job and write its release. Running the same run id again returns the stored release."""
    from pipelines.console.events import Events
    from pipelines.ledger.ledger import now

    events = Events(sys.stderr if json_logs else None, now)
    with exit_codes(events), closing(Progress(not (json_logs or dry_run))) as progress:
        from pipelines.job.job import load_job
        from pipelines.looks import look_at_ledger

        checked = load_job(job, overrides or [])
        events = events.of(run_id=checked.run_id, task=checked.task)
        with exit_codes(events), closing(progress):
            runs = with_beam(f"{__package__}.run.run")
            if dry_run and runs.delivery_of(checked).check():
                print_lines(
                    f"Run {checked.run_id} is already released. Running it would return that release."
                )
            elif dry_run:
                prepared = runs.prepare_run(checked, runner, beam_options or [])
                print_lines(
                    f"Run {checked.run_id} would start. No row was read; nothing was spent or written."
                )
                tell_not_read(checked.input.path, events)
                left = look_at_ledger(checked, prepared.plan)
                print_lines(*(each["says"] for each in left.values()))
            else:

                def on_stored() -> None:
                    progress.close()
                    if not json_logs:
                        tell(
                            f"Run {checked.run_id} was released before. This is its stored release: no row "
                            "was read. To run on new data or with a changed function, give another run_id."
                        )

                release = runs.run_job(checked, runner, beam_options or [], events, now, on_stored, progress)
                progress.close()
                _summarize(release, checked.output)
                _tell_full(events)
                tell_not_read(checked.input.path, events)


def _tell_full(events: Any) -> None:
    """Tell where rows could not wait on the disk, and took memory instead."""
    from transforms.spill import full_folders

    for folder in sorted(full_folders()):
        events.emit("disk_full", "WARNING", folder=folder)
        if events.stream is None:
            tell(
                f"The disk of {folder} was full or failed, so rows waited in memory, beyond what plans say. "
                "Let TMPDIR be a folder of another disk."
            )


@app.command()
def init(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task; `shoal schema` has all of them.")],
    rows: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The input: a file, a folder or a glob.")
    ] = None,
) -> None:
    """Print a first job with comments, from names and types of the columns of a file. Reads no rows."""
    with exit_codes():
        from pipelines.choose.first_job import first_job
        from pipelines.storage.locate import absolute

        print_lines(*first_job(task, rows))
        if rows is not None:
            tell_not_read(absolute(rows))


@app.command()
def plan(
    job: JobFile,
    overrides: Overrides = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    solve: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Plan with the smallest privacy.epsilon, params.target or params.blocks that keeps --for.",
        ),
    ] = None,
    promise: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="PROMISE=VALUE",
            help="With --solve: a promise and the most it may be. With --sweep: the name of the one to draw.",
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(metavar="KEY=LOW..HIGH", help="Draw promised and typical errors by the value of a key."),
    ] = None,
    simulate: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS[:SHAPE]",
            help="Run it on made-up rows with real noise, and show what comes out beside what is promised.",
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --sweep: write the curve as a page with pictures."),
    ] = None,
) -> None:
    """Show the plan of a job: its rounds, its noise, its promises and what is left of its ledger.

    Opens no file of rows and no output. What else would keep a run from starting is told on standard error.
    """
    with exit_codes():
        import logging

        from pipelines.choose.options import look
        from pipelines.console.printable import as_json, finite, printable, terminal
        from pipelines.job.text import read_job_text

        logging.disable(logging.CRITICAL)  # Beam logs where it is imported
        described, show, refusals = look(
            read_job_text(job, overrides or []), solve, promise, sweep, simulate, html
        )
        if json:
            typer.echo(as_json(finite(described), indent=2))
        else:
            show(printable(described), terminal(sys.stdout.isatty()))
        for refusal in refusals:
            tell(f"A run here would be refused. {refusal}")


@app.command()
def cost(
    job: JobFile,
    rows: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="Number of rows; repeat it. By default 1, 10 and 100 million."),
    ] = None,
    overrides: Overrides = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Predict time and memory of a job on this machine, from two runs on made-up rows. Spends nothing."""
    with exit_codes():
        from pipelines.console.printable import as_json, terminal
        from pipelines.job.job import load_job
        from pipelines.run.cost import ROWS, as_values, predict, table

        costs = predict(load_job(job, overrides or []), rows or ROWS)
        if json:
            typer.echo(as_json(as_values(costs), indent=2))
        else:
            terminal(sys.stdout.isatty()).print(table(costs))


@app.command("check-function")
def check_function(job: JobFile, overrides: Overrides = None) -> None:
    """Try the function of a sample_and_aggregate job on made-up rows. Reads no rows and spends nothing."""
    with exit_codes():
        from pipelines.job.job import load_job

        checks = with_beam(f"{__package__}.run.check_function")
        findings = checks.check(load_job(job, overrides or []))
        print_lines(*checks.show(findings))
        if any(finding.fails for finding in findings):
            raise typer.Exit(2)


@app.command()
def report(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="release.json, or the folder that holds it.")
    ],
) -> None:
    """Write report.html beside a release. It is made from the release alone."""
    with exit_codes():
        from pipelines.errors import JobError
        from pipelines.release import RELEASE, REPORT, as_the_run_wrote_it, stored_release
        from pipelines.report.page import report_page
        from pipelines.storage.locate import absolute, open_folder

        folder = open_folder(absolute(release).removesuffix(f"/{RELEASE}"))
        parsed = stored_release(folder)
        with as_the_run_wrote_it(folder.locate(RELEASE)):
            page = report_page(folder, parsed)
        if not (folder.read(REPORT) or page).startswith(page[:_DOCTYPE]):
            raise JobError(f"{folder.locate(REPORT)} exists, but it is not a report: move it elsewhere.")
        folder.replace(REPORT, page)
        print_lines(folder.locate(REPORT))


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A job file, a release.json, or the folder of one.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="Another one; with --groups it may be left out.")
    ] = None,
    groups: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="X Y", help="Compare group X of release A with group Y of B, or of A."),
    ] = None,
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Take the rows for samples: what sampling explains counts, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compare two jobs, releases or groups: what is asked and planned, and which changes noise explains."""
    with exit_codes():
        import logging

        from pipelines.compare.compare import compare, read_sides
        from pipelines.compare.shown import show_comparison
        from pipelines.console.printable import as_json, finite, printable, terminal

        logging.disable(logging.CRITICAL)  # Beam logs where it is imported
        found = compare(*read_sides(a, b, groups, sampled))
        if json:
            typer.echo(as_json(finite(found), indent=2))
        else:
            show_comparison(printable(found), terminal(sys.stdout.isatty()))


@app.command()
def screen(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE", help="release.json of one_cluster or k_cover, or the folder that holds it."
        ),
    ],
    rows: Annotated[str, typer.Argument(metavar="INPUT", help="Parquet: a file, a folder or a glob.")],
    output: Annotated[
        str, typer.Argument(metavar="OUTPUT", help="A new folder. Its contents will be private data.")
    ],
    beam_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- BEAM OPTIONS]", help="Options of Beam, after --.")
    ] = None,
    runner: Runner = "FnApiRunner",
) -> None:
    """Split rows into those inside the released balls and those outside. Spends no budget."""
    with exit_codes():
        from pipelines.storage.locate import absolute

        with_beam(f"{__package__}.run.screen").screen(release, rows, output, runner, beam_options or [])
        print_lines(os.path.join(output, "inside"), os.path.join(output, "outside"))
        tell_not_read(absolute(rows))


@app.command()
def schema(
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="The task. Without it, the schema is of all tasks.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the JSON schema of the jobs of TASK.")] = False,
) -> None:
    """Print the keys of the jobs of a task with defaults and meaning, or the JSON schema of all jobs."""
    with exit_codes():
        from pipelines.console.printable import as_json
        from pipelines.job.schema import schema as job_schema
        from pipelines.job.schema import schema_of_task

        if task is None or json:
            typer.echo(as_json(job_schema() if task is None else schema_of_task(task), indent=2))
        else:
            from pipelines.job.keys import show_keys

            print_lines(*show_keys(task))


@app.command()
def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the files of the demo.")] = "demo-out",
) -> None:
    """Ask several questions about the world's airports with differential privacy."""
    with exit_codes():
        from pipelines.demo import write_demo
        from pipelines.job.job import load_job

        with closing(Progress()) as progress:
            checked = load_job(write_demo(out))
            release = with_beam(f"{__package__}.run.run").run_job(checked, progress=progress)
        _summarize(release, checked.output)


def _summarize(release: dict[str, Any] | None, output: str) -> None:
    from pipelines.release import RELEASE, REPORT, as_the_run_wrote_it
    from pipelines.report.summary import summary_of
    from pipelines.storage.locate import open_folder

    if release is None:
        print_lines(f"The job was submitted. The release will be in {output}.")
        return
    with as_the_run_wrote_it(os.path.join(output, RELEASE)):
        lines = summary_of(open_folder(output), release)
    print_lines(*lines, "", os.path.join(output, RELEASE), os.path.join(output, REPORT))


def _command() -> None:
    try:
        app()
    except ShoalError as error:  # the text of --help cannot be written
        tell(str(error))
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code and was_asked():
            sys.exit(143)
        raise


def main() -> None:
    """Run the command, and end the process."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the runner already runs in parallel
    guard_streams()
    listen()
    exit_after(_command)
