"""What a domain of latitude and longitude needs: a task about distances, and these two columns."""

import re

from pipelines.job.inputs import RowsInput
from pipelines.tasks import TASKS, Keep

_LATITUDE, _LONGITUDE = {"lat", "latitude"}, {"lon", "lng", "long", "longitude"}
"""Words in the names of columns."""

_KEEPS: tuple[Keep, ...] = ("one", "last", "mean")
"""How the places of a unit may become one."""


def check_geography(task: str, given: RowsInput, kind: str) -> None:
    """Check that a job may have a domain with geography.

    Args:
        task: name of the task.
        given: the input, with as many columns as the domain has axes.
        kind: the value of `domain.geography`.

    Raises:
        ValueError: one sentence that names the field.
    """
    geography = f"domain.geography is {kind}"
    if not TASKS[task].metric:
        tasks = ", ".join(name for name, each in TASKS.items() if each.metric)
        raise ValueError(
            f"{geography}, but {task} is not about distances between rows: leave it out, or ask one of "
            f"{tasks}."
        )
    words = [{word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)} for name in given.columns]
    if not (_LATITUDE & words[0] and _LONGITUDE & words[1]):
        raise ValueError(
            f"input.columns is {list(given.columns)} and {geography}: give the column of the latitude and "
            "then that of the longitude, with names such as lat and lon (input.derive gives other names)."
        )
    if given.unit is not None and given.keep not in _KEEPS:
        raise ValueError(
            f"input.keep is {given.keep} and {geography}: a place has no {given.keep}, so use "
            f"{', '.join(_KEEPS[:-1])} or {_KEEPS[-1]}."
        )
