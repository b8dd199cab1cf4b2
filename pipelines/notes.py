"""What a reader of a plan or a release should know of it, in sentences."""

from typing import Any

from core.geography import MAP_PERCENT, SPHERE_PERCENT
from core.input_checks import CheckedRound
from core.plan import Plan
from pipelines.answers.text import SECRET_PAIRS, Counted, counted, hides, number
from pipelines.each_row import counts_alone
from pipelines.job.job import Job
from pipelines.job.prepared import notes_of
from pipelines.quantities import Metres
from pipelines.tasks import TASKS

_CLOSE = 1e-6  # of a step: float64 rounds bounds
_LARGE_DELTA = 1e-3  # some data have a thousand rows
_LARGE_EPSILON = 10.0
_KEPT = {
    "one": "Where several rows of a unit are about one answer, one of them is kept, chosen uniformly at "
    "random, and all counts and promises are about the kept rows. The choice adds an error that no promise "
    "includes and that is often larger than the promised one. In a count or rank, its standard error is up "
    "to sqrt(p (1 - p) n) units, where p is the counted share of n units.",
    "last": "The last row of each unit is kept: the one with the greatest value of input.order. A row "
    "without such a value comes before all others, and ties are broken at random. All counts and promises "
    "are about the kept rows.",
    "mean": "The rows of each unit are clamped to the domain and replaced by their mean, which is rounded to "
    "the step, too: so choose a step that is small beside the differences that matter.",
    "min": "The rows of each unit are clamped to the domain and replaced by their smallest value, column by "
    "column.",
    "max": "The rows of each unit are clamped to the domain and replaced by their largest value, column by "
    "column.",
    "sum": "The rows of each unit are clamped to the domain and replaced by their sum. The sum is clamped to "
    "the domain again.",
    "count": "The rows of each unit are replaced by their number. The number is clamped to the domain.",
}


def describe_checks(job: Job, plan: Plan) -> dict[str, Any]:
    """Return the checks of a release before their counts are known: the standard deviation of each count."""
    (count,) = (step.count for step in plan.rounds if isinstance(step, CheckedRound) and step.count)
    return {"share": job.checks, "standard_error": count.deviation}


def notes(job: Job, plan: Plan, whole: str | None = None) -> list[str]:
    """Return the notes of a plan, which its reader should know.

    Args:
        job: the job.
        plan: its plan.
        whole: what the whole run hides, in words, where the plan is of a part of it; None for `hidden`.
    """
    return [
        _unit(job),
        *notes_of(job.input),
        *_weak(job),
        _apart(job) if TASKS[job.task].subsamples else _left_out(job, plan),
        f"The run hides {whole or hidden(job, plan)}.",
        *_last_points(job),
        *_points_on_earth(job),
        *map(records_of(job).read, plan.notes),
        *map(records_of(job).read, dict.fromkeys(each.says for each in plan.tightness.values())),
    ]


def _weak(job: Job) -> list[str]:
    """Return a note where the budget promises little to a single person."""
    privacy, one = job.privacy, "row" if job.unit is None else "unit"
    found = []
    if privacy.delta > _LARGE_DELTA:
        found.append(
            f"privacy.delta is {number(privacy.delta)}: with up to this probability a run may show a {one} "
            f"as it is, and each {one} has that chance. Give a delta well below 1 / the number of {one}s."
        )
    if privacy.epsilon > _LARGE_EPSILON:
        found.append(
            f"privacy.epsilon is {number(privacy.epsilon)}, which hides no single {one}: an answer may be "
            f"e^{number(privacy.epsilon)} times as likely with it as without it. Usual values are 0.1 to 3."
        )
    return found


def _last_points(job: Job) -> list[str]:
    """Return a note for each upper bound that is not a grid point."""
    grid, place = job.grid, "domain.upper"
    if grid.geography is not None:
        return []
    names, units = job.input.columns, getattr(getattr(job, "domain", None), "units", None) or {}
    if TASKS[job.task].subsamples:
        place, names = "params.outputs.upper", tuple(f"value {axis}" for axis in range(grid.dimension))
    found = []
    for name, low, high, extent in zip(names, grid.lower, grid.upper, grid.extents, strict=True):
        last = low + extent * grid.step
        unit = f" {units[name]}" if name in units else ""
        if high - last > _CLOSE * grid.step:
            found.append(
                f"{place} of {name} is {number(high, 12)}{unit}, which is not lower plus a multiple of step. "
                f"The last grid point is {number(last, 12)}{unit}, and larger values are moved to it."
            )
    return found


def _apart(job: Job) -> str:
    """Return how the function is kept apart from all but the rows of its block."""
    inside = {
        "process": "It has the rights of the worker, so it must not be hostile (params.isolation).",
        "sandbox": "It has no network, no files but those of the system and of Python's packages, and no "
        "rights. It must not pass what it saw to later blocks.",
    }
    params = job.task_params
    lead = "Each block is answered in a process of its own."
    if params.untrusted().shares:
        lead = (
            "One process answers many blocks: the function is a part of Shoal that keeps nothing of a block."
        )
    return f"{lead} {inside[params.isolation]}"


def _points_on_earth(job: Job) -> list[str]:
    """Return a note on what points are where the columns are latitude and longitude."""
    earth = job.grid.geography
    if earth is None:
        return []
    apart = number(Metres(earth.step, earth.step))
    if earth.flat:
        return [
            f"Rows are points of an equal-area map of the domain, {apart} apart. Distances on it are within "
            f"{MAP_PERCENT}% of those on the Earth."
        ]
    return [
        f"Rows are points of a sphere, {apart} apart. Distances on it are within {SPHERE_PERCENT}% of those "
        "on the Earth."
    ]


def _left_out(job: Job, plan: Plan) -> str:
    """Return what becomes of values that are not in the domain."""
    alone = counts_alone(job.input.columns, job.input.derive)
    missing = "Rows with a null, NaN or infinity in a used column are left out"
    missing += "." if job.unit is None else f", and so are rows without {job.unit}."
    if alone:
        without = "" if job.unit is None else f", but rows without {job.unit} are left out"
        missing = f"Rows count whatever their values are{without}."
    if job.group_keys is not None:
        missing += " Rows whose key is null, or cannot be read as the type of its column, are in no group."
        missing += " They are not counted."
    if alone:
        return missing
    what, such = ("Numbers", "values, or such numbers,") if job.keep == "count" else ("Values", "values")
    moved = f"{what} outside of the domain are moved to its edge, which belongs to it."
    if job.grid.geography is None:
        moved = (
            f"{what} are rounded to the step of the domain, and promises are about them as they are then. "
            "Those outside of the domain are moved to its edge, which belongs to it."
        )
    public = job.unit is None and job.neighbors.name == "replace_one" and job.group_keys is None
    if public:
        missing += " How many rows are not left out is public under replace_one."
    if job.checks:
        share, error = number(100 * job.checks), number(describe_checks(job, plan)["standard_error"], 3)
        many = "units" if job.unit is not None else records_of(job).many
        told = (
            f"The release has the noisy numbers of {many} that have such {such} in each column. Their "
            f"standard error is {error}. They take {share}% of epsilon (input.checks)."
        )
    else:
        told = f"The release does not say how many {'are moved' if public else 'these are'}"
        may = job.neighbors.policy is None and job.bounds is None  # else no checks are possible
        told += ", as input.checks is 0." if may else "."
    return f"{missing} {moved} {told}"


def records_of(job: Job) -> Counted:
    """Return what texts of core call a row. Where a function gets rows, they are rows also with a unit."""
    unit = job.unit if job.keep is not None else None
    privacy = {"unit": unit, "keep": job.keep, "count": job.count}
    made = {"derive": job.input.derive}
    return counted({"privacy": privacy, "domain": {"columns": job.input.columns}, "rows": made})


def hidden(job: Job, plan: Plan) -> str:
    """Return a phrase for what the run hides."""
    if plan.hides is not None:
        return plan.hides
    if plan.policy is not None:
        return SECRET_PAIRS
    return hides(job.neighbors.name, job.unit, job.count)


def _unit(job: Job) -> str:
    if job.count is not None:
        return f"There is no privacy unit. Each of the {job.count} records of a row counts as one person."
    if job.unit is None:
        return "There is no privacy unit. Each row counts as one person, and the promise is for one row."
    if job.bounds is not None:
        made = (
            "Its rows remain several records, of which it keeps as many as contributions says. All counts "
            "and promises are about the kept rows."
        )
    elif counts_alone(job.input.columns, job.input.derive):
        made = "Each unit counts once, however many rows it has."
    else:
        made = "All of them are in one block." if job.keep is None else _KEPT[job.keep]
    return (
        f"The privacy unit is all rows that have the same value of {job.unit}. {made} A value that stands "
        "for nobody, such as 'unknown', is one unit: leave it out (input.where)."
    )
