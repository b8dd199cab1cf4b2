"""What `shoal plan` does by its options: the plan of a job, of a solved one, a sweep, or a simulation."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipelines.errors import JobError, quoted
from pipelines.job.job import check_raw
from pipelines.looks import Show, look_at_plan


def look(
    raw: dict[str, Any],
    solve: str | None = None,
    promise: str | None = None,
    sweep: str | None = None,
    simulate: str | None = None,
    html: str | None = None,
) -> tuple[dict[str, Any], Show, list[str]]:
    """Return what is shown as values, what prints them, and why a run would be refused.

    Args:
        raw: the job as a mapping.
        solve: the key to solve for.
        promise: PROMISE=VALUE, or with `sweep` the name of a promise.
        sweep: KEY=LOW..HIGH.
        simulate: ROWS[:SHAPE].
        html: where to write the curve of a sweep.

    Raises:
        JobError: the job cannot be planned, or options do not fit.
    """
    if promise is not None and solve is None and sweep is None:
        raise JobError(
            f"--for is {quoted(promise)}, but there is no --solve or --sweep, which it belongs to."
        )
    if solve is not None and (sweep is not None or simulate is not None):
        raise JobError("--solve is given beside --sweep or --simulate: give one of them.")
    if html is not None and sweep is None:
        raise JobError(f"--html is {html}, but only the curve of a --sweep is written: give that, too.")
    if solve is not None:
        return _solved(raw, solve, promise)
    if sweep is not None:
        return _swept(raw, sweep, promise, simulate, html)
    if simulate is not None:
        return _simulated(raw, simulate)
    return look_at_plan(check_raw(raw))


def _solved(raw: dict[str, Any], key: str, promise: str | None) -> tuple[dict[str, Any], Show, list[str]]:
    from pipelines.choose.solve import solve

    name, equals, most = (promise or "").partition("=")
    if not (name and equals and most):
        raise JobError(
            f"--solve {key} needs a promise and the most that it may be, such as --for rank_error=50: "
            f"{'there is no --for' if promise is None else f'--for is {quoted(promise)}'}."
        )
    changed, solved = solve(raw, key, name, most)
    described, show, refusals = look_at_plan(check_raw(changed))

    def show_both(values: Mapping[str, Any], console: Any) -> None:
        console.print(values["solved"]["says"])
        console.print()
        show({key: value for key, value in values.items() if key != "solved"}, console)

    return {**described, "solved": asdict(solved)}, show_both, refusals


def _swept(
    raw: dict[str, Any], text: str, promise: str | None, rows: str | None, html: str | None
) -> tuple[dict[str, Any], Show, list[str]]:
    from pipelines.choose.curves import curve_page, describe_curve, show_curve
    from pipelines.choose.sweep import parse_sweep, sweep
    from pipelines.simulation.made_up import parse_made_up

    made_up = None if rows is None else parse_made_up(rows)
    write = None
    if html is not None:
        from pipelines.report.page import page_at

        write = page_at(html)
    curve = sweep(raw, parse_sweep(text, raw), promise, made_up)
    if write is not None:
        write(curve_page(curve, str(raw.get("task", "the job"))))
    return describe_curve(curve), lambda _, console: show_curve(curve, console), []


def _simulated(raw: dict[str, Any], rows: str) -> tuple[dict[str, Any], Show, list[str]]:
    from pipelines.simulation.made_up import parse_made_up
    from pipelines.simulation.shown import show, simulate_job

    made_up = parse_made_up(rows)
    return simulate_job(check_raw(raw), made_up), show, []
