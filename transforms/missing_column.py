"""The error of a column that a file does not have."""

from collections.abc import Sequence

from core.nearest import meant, nearest
from transforms.list_files import File, InputError, short

_NAMED = 30
"""Columns that an error names."""


def not_once(field: str, name: str, file: File, names: Sequence[str]) -> InputError:
    """Return the error that a file has no column of this name, or several, with the nearest name.

    It names the columns that are there. But the first line of a CSV file without a header is a row, so
    nothing of that line is quoted.

    Args:
        field: that names the column.
        name: of the column.
        file: the file.
        names: of its columns.
    """
    csv = file.format == "CSV"
    if name in names:
        found = "occurs more than once in"
        allowed = f"a used column must be there once{' in the first line' if csv else ''}"
    else:
        found, allowed = "is missing from", _listed(names)
        if csv:
            allowed = "give a column that its first line names (`shoal init` lists them)"
            if len(names) == 1:
                allowed = "its first line has one name: commas separate names, not semicolons or tabs"
    near = None if csv or name in names else nearest(name, names)
    asked = meant(None if near is None else short(near))
    return InputError(f"{field}: {short(name)} {found} {short(file.name)}{asked}; {allowed}.")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"its columns are {', '.join(map(short, names[:_NAMED])) + more if names else 'none'}"
