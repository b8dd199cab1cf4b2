"""What units of columns need: columns of numbers, in a task whose answers are on them."""

from collections.abc import Sequence

from pipelines.errors import quoted
from pipelines.job.domain import Domain
from pipelines.tasks import TASKS

_LONGEST = 20


def check_units(task: str, columns: Sequence[str], domain: Domain) -> None:
    """Check the units of a domain, if it has some.

    Args:
        task: name of the task.
        columns: the columns of the input, one for each axis.
        domain: of the job.

    Raises:
        ValueError: one sentence that names the field.
    """
    if domain.units is None:
        return
    if not domain.units:
        raise ValueError("domain.units is empty: give the unit of a column, or leave it out.")
    if domain.geography is not None:
        raise ValueError(
            "domain.units is given beside domain.geography, whose units are degrees and metres: leave it out."
        )
    if not TASKS[task].times:
        raise ValueError(
            f"domain.units is given, but rows of {task} are edges between node ids: leave it out."
        )
    times = domain.times
    for name, unit in domain.units.items():
        if name not in columns:
            raise ValueError(f"domain.units has {quoted(name)}: the columns are {', '.join(columns)}.")
        if times is not None and times.lower[columns.index(name)] is not None:
            raise ValueError(f"domain.units has {name}, a column of {times.kind}: their units are known.")
        if not 0 < len(unit) <= _LONGEST or unit != unit.strip():
            raise ValueError(
                f"domain.units.{name} is {quoted(unit)}: give 1 to {_LONGEST} characters, with no space at "
                "an end."
            )
