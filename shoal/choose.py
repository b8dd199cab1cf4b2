"""Choose the parameters of a job from Python, as `shoal plan` does by its options. No row is read."""

from pipelines.choose.curves import curve_page, describe_curve, show_curve
from pipelines.choose.options import look
from pipelines.choose.sweep import parse_sweep
from pipelines.choose.sweep import sweep as swept
from pipelines.console.quiet import quiet
from pipelines.errors import JobError, quoted
from pipelines.simulation.made_up import parse_made_up
from shoal.calls import Job, read_to_plan
from shoal.shown import Plan, Shown


def solve(job: Job, key: str, promise: str, most: float | str) -> Plan:
    """Return the plan of a job with the smallest value of a key that keeps a promise.

    `plan.values["solved"]` has the value, and what is promised at it.

    Args:
        job: see `shoal.plan`; it may have no value of the key yet.
        key: `privacy.epsilon`, `params.target` or `params.blocks`.
        promise: name of a promise, as in `plan.error`.
        most: the largest value that it may have; a text such as 3 days for a distance between dates.

    Raises:
        ShoalError: the job is wrong, or no value keeps the promise.
    """
    _check_texts(key=key, promise=promise)
    raw, stored = read_to_plan(job)
    described, show, refusals = look(raw, solve=key, promise=f"{promise}={most}")
    return Plan.of(described, show, refusals, stored)


def sweep(
    job: Job,
    key: str,
    low: float,
    high: float,
    promise: str | None = None,
    rows: int | None = None,
    shape: str = "uniform",
) -> Shown:
    """Return promised and typical errors of a job by the value of a key. A notebook shows the curve.

    Args:
        job: see `shoal.plan`.
        key: of a number, such as `privacy.epsilon`.
        low: its smallest value.
        high: its largest value.
        promise: name of the promise to draw; by default all.
        rows: number of made-up rows on which errors are measured; by default none are.
        shape: of these rows; see `simulate`.

    Raises:
        ShoalError: the job or an argument is wrong.
    """
    _check_texts(key=key, **({} if promise is None else {"promise": promise}))
    raw, _ = read_to_plan(job)
    with quiet():
        made_up = None if rows is None else parse_made_up(f"{rows}:{shape}")
        curve = swept(raw, parse_sweep(f"{key}={low}..{high}", raw), promise, made_up)
        page = curve_page(curve, str(raw.get("task", "the job")))
    return Shown.of(describe_curve(curve), lambda _, console: show_curve(curve, console), page.decode())


def _check_texts(**given: object) -> None:
    """Check that arguments are texts: a caller may give anything.

    Raises:
        JobError: one is none, or is empty.
    """
    for name, value in given.items():
        if not isinstance(value, str) or not value:
            such = {"key": "privacy.epsilon", "promise": "rank_error"}[name]
            raise JobError(f"{name} is {quoted(value)}: give the name of a {name}, such as {such}.")


def simulate(job: Job, rows: int, shape: str = "uniform") -> Shown:
    """Return what comes out of runs of a job on made-up rows with real noise, beside what is promised.

    Nothing is spent, and neither the ledger nor the output is touched.

    Args:
        job: see `shoal.plan`.
        rows: how many made-up rows.
        shape: `uniform`, `ties_50`, `ties_92`, `ties_100`, `heavy` or `clumps`.

    Raises:
        ShoalError: the job or an argument is wrong, or the job is not simulated.
    """
    raw, _ = read_to_plan(job)
    with quiet():
        described, show, _ = look(raw, simulate=f"{rows}:{shape}")
    return Shown.of(described, show)
