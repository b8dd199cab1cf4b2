"""Names of the measures of statistics: those of a job, those in a table, and those in a headline."""

from typing import Any

from core.statistics.params import quantile_name


def names_of(measures: list[Any]) -> list[str]:
    """Return the names of the measures of a job, each quantile by its own."""
    found: list[str] = []
    for measure in measures:
        found += [measure] if isinstance(measure, str) else map(quantile_name, measure["quantiles"])
    return found


def listed(measures: list[Any]) -> str:
    """Return what a headline calls the measures of a job."""
    plural = {
        "variance": "variances",
        "units": "numbers of units",
        "minimum": "minima",
        "maximum": "maxima",
    }
    shown = ["quantile" if isinstance(measure, dict) else measure for measure in measures]
    names = [plural.get(measure, f"{measure}s") for measure in shown]
    return ", ".join(names[:-1]) + (" and " if names[:-1] else "") + names[-1]


def in_table(measures: list[str], columns: int) -> list[str]:
    """Return the columns of a table that have measures of so many columns of the input."""
    found = []
    for measure in measures:
        single = measure in ("count", "units") or columns == 1
        found += [measure] if single else [f"{measure}_{axis}" for axis in range(columns)]
    return found
