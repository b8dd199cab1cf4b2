"""The commands of `shoal ledger`. Each imports its heavy modules itself."""

import sys
from typing import Annotated, Any

import typer

from pipelines.console.command import Overrides, exit_codes, print_lines

ledger = typer.Typer(
    help="The ledger of a dataset: its total privacy budget, and every charge to it.", no_args_is_help=True
)

LedgerFile = Annotated[str, typer.Argument(metavar="LEDGER.json", help="A URL or a local path.")]


@ledger.command("create")
def create(
    path: LedgerFile,
    epsilon: Annotated[float, typer.Option(help="The epsilon that all runs together may spend.")],
    delta: Annotated[float, typer.Option(help="The delta that all runs together may spend.")],
    neighbors: Annotated[
        str | None,
        typer.Option(
            help="The neighbor relation of the promise: add_or_remove_one (the default) or replace_one."
        ),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="The column of the privacy unit. Without it, the unit is one row.")
    ] = None,
    count: Annotated[
        str | None,
        typer.Option(
            help="The column that says how many records a row stands for (input.count). The promise is then "
            "for one record."
        ),
    ] = None,
    accountant: Annotated[
        str,
        typer.Option(
            help="How runs are composed. basic adds their epsilons and deltas, and is best for few runs. "
            "renyi composes their draws, and admits many more runs that are small or use Gaussian noise."
        ),
    ] = "basic",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="JOB.yaml",
            help="A job with a privacy.policy. The promise is then for the secret pairs of that policy, on "
            "the columns and the domain of that job, under replace_one.",
        ),
    ] = None,
) -> None:
    """Create the ledger of a dataset."""
    with exit_codes():
        from pipelines.job.job import load_job
        from pipelines.ledger.ledger import create_ledger, new_ledger
        from pipelines.ledger.policy import LedgerPolicy
        from pipelines.storage.locate import absolute

        relation = neighbors or ("add_or_remove_one" if policy is None else "replace_one")
        fields: dict[str, Any] = {"neighbors": relation, "unit": unit, "epsilon": epsilon, "delta": delta}
        if count is not None:
            fields["count"] = count
        if policy is not None:
            fields["policy"] = LedgerPolicy.of(load_job(policy))
        create_ledger(absolute(path), new_ledger(fields, accountant))
        print_lines(path)


@ledger.command("show")
def show_ledger(
    path: LedgerFile,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB.yaml", help="Say how many more runs of this job fit; else such as the last one."
        ),
    ] = None,
    overrides: Overrides = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write what is spent over time as a page with a picture."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the remaining budget of a ledger, how many more runs fit, and every charge."""
    with exit_codes():
        from pipelines.console.printable import as_json, printable, terminal
        from pipelines.errors import JobError
        from pipelines.job.job import load_job
        from pipelines.ledger.ledger import read_ledger
        from pipelines.ledger.left import look_ahead
        from pipelines.ledger.table import describe_ledger, show_charges
        from pipelines.storage.locate import absolute

        if overrides and job is None:
            raise JobError("--set overrides a key of a job: give it with --job, or leave it out.")
        place = absolute(path)
        found = read_ledger(place)
        described = {
            **describe_ledger(found),
            **look_ahead(place, found, None if job is None else load_job(job, overrides or [])),
        }
        if html is not None:
            from pipelines.ledger.page import ledger_page
            from pipelines.report.page import page_at

            page_at(html)(ledger_page(described))
        if json:
            typer.echo(as_json(described, indent=2))
        else:
            show_charges(printable(described), terminal(sys.stdout.isatty()))
