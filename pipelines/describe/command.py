"""The command `shoal describe`."""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any

import typer

from pipelines.console.command import exit_codes, print_lines, tell, tell_not_read, with_beam
from pipelines.console.progress import Progress

_EPSILON, _DELTA = 1.0, 1e-9


def describe(
    rows: Annotated[str, typer.Argument(metavar="FILE", help="The input: a file, a folder or a glob.")],
    beam_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- BEAM OPTIONS]", help="Options of Beam, after --.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The budget of all columns together.", show_default=str(_EPSILON))
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="The same. At 0 no text is described.", show_default=str(_DELTA))
    ] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says whose row it is.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="NAME,NAME", help="Columns to describe; by default all.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=TYPE,NAME=TYPE", help="Types of columns that have none in the file, as in CSV."
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a key of the job, such as privacy.ledger or run_id."
        ),
    ] = None,
    runner: Annotated[
        str, typer.Option(help="FnApiRunner, FlinkRunner, DataflowRunner or PrismRunner.")
    ] = "FnApiRunner",
    job: Annotated[
        bool, typer.Option("--job", help="Print the job and stop. Reads no rows, spends nothing.")
    ] = False,
) -> None:
    """Describe every column: nulls, quantiles, frequent values. Needs no bounds; one budget pays for all.

    Spends the budget, and writes a release as `shoal run` does.
    """
    with exit_codes():
        from pipelines.describe.columns import describe as describe_columns
        from pipelines.job.job import check_raw

        wanted = [] if columns is None else [name.strip() for name in columns.split(",")]
        given = None if types is None else _types(types)
        budget = _EPSILON if epsilon is None else epsilon, _DELTA if delta is None else delta
        description = describe_columns(rows, *budget, unit, wanted, overrides or [], given)
        shaping = {
            "FILE": ("input.path", rows),
            "--unit": ("input.unit", unit),
            "--types": ("input.types", given),
        }
        _check_once(description.job, shaping, needed=True)
        spent = {"--epsilon": ("privacy.epsilon", epsilon), "--delta": ("privacy.delta", delta)}
        _check_once(description.job, spent)
        checked = check_raw(dict(description.job))
        if job:
            print_lines(*_as_yaml(description.job))
            tell_not_read(checked.input.path)
            return
        with closing(Progress()) as progress:
            release = _run(checked, runner, beam_options or [], progress)
        if release is None:
            print_lines(f"The job was submitted. The release will be in {checked.output}.")
        else:
            _show(description, release, checked.output)
        tell_not_read(checked.input.path)


def _check_once(job: Any, options: Mapping[str, tuple[str, Any]], needed: bool = False) -> None:
    """Check that no --set changed what an option gives.

    Args:
        job: with every --set.
        options: the key of the job and the value of each option; None where it is not given.
        needed: whether the columns to describe follow from the options, so that --set cannot stand for them.

    Raises:
        JobError: one did.
    """
    from pipelines.errors import JobError

    for option, (key, value) in options.items():
        part, _, name = key.partition(".")
        held = job[part].get(name) if isinstance(job[part], dict) else None
        if held is value or held == value or (value is None and not needed):  # NaN does not equal itself
            continue
        if value is None or option == "FILE":
            raise JobError(f"--set {key} is given, but describe takes it by {option} alone: leave it out.")
        raise JobError(f"{option} and --set {key} are given: leave one of them out.")


def _types(text: str) -> dict[str, str]:
    """Return the type of each column from `NAME=TYPE,NAME=TYPE`."""
    from pipelines.errors import JobError

    pairs = [each.rpartition("=") for each in text.split(",")]
    if not all(name.strip() and kind.strip() for name, _, kind in pairs):
        raise JobError(f"--types is {text!r}: give a type for each column, such as age=integer,city=text.")
    types = {name.strip(): kind.strip() for name, _, kind in pairs}
    if len(types) < len(pairs):
        raise JobError(f"--types is {text!r}: give each column once.")
    return types


def _as_yaml(job: Any) -> list[str]:
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True  # a job file has none

    text = yaml.dump(
        job, Dumper=Plain, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    return str(text).splitlines()


def _run(checked: Any, runner: str, beam_options: list[str], progress: Progress) -> Any:
    """Run the job; return its release, or None where a cluster will write it."""
    runs = with_beam(f"{__package__.rpartition('.')[0]}.run.run")

    def on_stored() -> None:
        progress.close()
        tell(
            f"Run {checked.run_id} was released before. This is its stored release: no row was read. To run "
            "on new data, give another run_id: --set run_id=..."
        )

    return runs.run_job(checked, runner, beam_options, on_stored=on_stored, progress=progress)


def _show(description: Any, release: Any, output: str) -> None:
    from pipelines.describe.shown import show_description
    from pipelines.joint_release import read_answer_rows
    from pipelines.release import RELEASE, REPORT, as_the_run_wrote_it
    from pipelines.storage.locate import open_folder

    with as_the_run_wrote_it(os.path.join(output, RELEASE)):
        tables = read_answer_rows(open_folder(output), release)
        lines = show_description(description, release, tables)
    print_lines(*lines, "", os.path.join(output, RELEASE), os.path.join(output, REPORT))
