"""Values of a job that is given as a mapping: those of Python, as a job file has them."""

import datetime
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.console.printable import printable
from pipelines.errors import JobError
from pipelines.job.text import MOST_LEVELS


def written(value: Any, name: str = "") -> Any:
    """Return a value of a job as a copy of mappings, lists, text, numbers, booleans and None alone.

    Numbers and arrays of numpy become those of Python, tuples become lists, and paths, dates and times
    become text.

    Args:
        value: the job, or what is in it.
        name: dotted name of its place; empty for the job.

    Raises:
        JobError: a value is of another type, a key is no text, or values are nested too deep.
    """
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind != "m":  # whose numbers have units
        value = (value.astype(str) if value.dtype.kind == "M" else value).tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value
    if name.count(".") + name.count("[") > MOST_LEVELS:
        raise JobError(f"{name[:60]} is nested more than {MOST_LEVELS} levels deep: no field of a job is.")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                where = f"of {name}" if name else "of the job"
                raise JobError(f"The key {_told(key)} {where} is {type(key).__name__}: a key must be text.")
        return {key: written(held, f"{name}.{key}" if name else key) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [written(held, f"{name}[{i}]") for i, held in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, datetime.date):  # also a time
        return value.isoformat()
    raise JobError(
        f"{name or 'job'} is {_told(value)}, of type {type(value).__name__}: give text, a number, true or "
        "false, a list or a mapping."
    )


def _told(value: object) -> str:
    try:
        return printable(ascii(value)[:60])
    except Exception:  # an object may fail to say what it is, as may a number of too many digits
        return "a value"
