"""Run ids in the paths of a job, so that one job file is that of every night."""

import re
from datetime import date

RUN_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
"""What a run id may be."""

_ID, _DATE = "{run_id}", "{date}"
_AT_THE_END = re.compile(r"(?:^|[._-])(\d{4}-(?:\d\d-\d\d|W\d\d|\d\d))$")
"""A day, a week or a month that is a part of its own."""


def check_paths(path: str, output: str, run_id: str | None) -> None:
    """Check that the run id has what the paths of input and output name.

    Raises:
        ValueError: one sentence that names the field.
    """
    unfilled = output.replace(_ID, "")
    if "{" in unfilled or "}" in unfilled:
        raise ValueError(f"output is {output}: the only placeholder is {{run_id}}.")
    if run_id is None and (_ID in path or _DATE in path):
        raise ValueError(
            f"input.path is {path}: it names the run id, so give the job a run_id, such as a date."
        )
    if run_id is not None and _DATE in path and _date_of(run_id) is None:
        raise ValueError(
            f"input.path is {path}, whose {_DATE} is the date at the end of run_id, but run_id is {run_id}: "
            "give one that ends with a day, a week or a month, such as visits-2026-11-16, visits-2026-W47 or "
            "visits-2026-11."
        )


def filled_path(path: str, run_id: str) -> str:
    """Return the path of the input with the run id, and with the date at its end."""
    day, filled = _date_of(run_id), path.replace(_ID, run_id)
    return filled if day is None else filled.replace(_DATE, day)


def _date_of(run_id: str) -> str | None:
    """Return the day, week or month at the end of a run id, if the calendar has it."""
    found = _AT_THE_END.search(run_id)
    if found is None:
        return None
    text = found[1]
    try:
        date.fromisoformat(f"{text}-1" if "W" in text else f"{text}-01" if len(text) == 7 else text)
    except ValueError:
        return None
    return text


def filled_output(output: str, run_id: str) -> str:
    """Return the folder of the release with the run id."""
    return output.replace(_ID, run_id)
