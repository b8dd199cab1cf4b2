"""The formats of files, chosen by how a name ends.

A format says the schema of a file, at which row each of its pieces begins, and what the rows of a piece are,
as Arrow batches. A piece is a row group of Parquet or a record batch of Arrow IPC; a file of any other format
is one piece, which is read as a stream. All that follows sees batches alone, so the same rows give the same
aggregates in every format.

CSV, JSON lines and the names of folders such as `day=2013-01-31` have no types. A type must not be guessed
from rows: an error, or a type, would then depend on one of them. So types follow from the job alone; see
`transforms.column_types`. A text that is not of its type is null.
"""

from collections.abc import Iterable
from typing import Literal, get_args

Format = Literal["Parquet", "CSV", "JSON lines", "Arrow IPC", "Avro"]

ENDINGS: dict[str, Format] = {
    ".parquet": "Parquet",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".jsonl": "JSON lines",
    ".jsonl.gz": "JSON lines",
    ".ndjson": "JSON lines",
    ".ndjson.gz": "JSON lines",
    ".arrow": "Arrow IPC",
    ".feather": "Arrow IPC",
    ".avro": "Avro",
}
"""How the names of files end that a folder may have, in any case. A file that is named otherwise is taken for
Parquet."""

GZIP = ".gz"

WITHOUT_TYPES: tuple[Format, ...] = ("CSV", "JSON lines")
"""Formats whose columns have the types that the job gives them."""

_OF_TABLES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in which tables say which of their files are those of the last version."""

NAMES = ", ".join(get_args(Format)[:-1]) + f" or {get_args(Format)[-1]}"


def ending_of(name: str) -> str | None:
    """Return with which of `ENDINGS` a name ends, in any case; None where it is named otherwise."""
    lower = name.lower()
    return next((ending for ending in ENDINGS if lower.endswith(ending)), None)


def format_of(name: str) -> Format:
    """Return the format of a file by the ending of its name."""
    return ENDINGS[ending_of(name) or ".parquet"]


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ in their endings alone, such as a.csv and a.csv.gz; None without any."""
    first: dict[str, str] = {}
    for name in names:
        bare = name[: len(name) - len(ending_of(name) or "")]
        other = first.setdefault(bare, name)
        if other != name:
            return other, name
    return None


def table_of(name: str) -> tuple[list[str], str] | None:
    """Return in which folders a file of a table with versions lies, and the kind of the table, by a name.

    None for a name that no known kind has.
    """
    parts = name.split("/")
    for place, part in enumerate(parts):
        kind = "Iceberg" if part.endswith(".metadata.json") else _OF_TABLES.get(part)
        if kind is not None:
            return parts[:place], kind
    return None


def not_parquet(name: str) -> str:
    """Return what is wrong with a file that is taken for Parquet by its name, and is not."""
    others = ", ".join(ending for ending, form in ENDINGS.items() if form != "Parquet")
    why = "" if ending_of(name) else f", for which it is taken, because its name has no ending of {others}"
    return f"is not Parquet{why}"
