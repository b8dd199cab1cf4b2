"""The table of a release: one Parquet file, or parts that workers write, each of them once.

Each file holds in its metadata the release of its own rows. That of the whole table is made from the stored
files alone, so it is always of the draws that are visible.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from core.domain import Grid
from core.grouping import TEXT
from core.marks import Mark
from core.plan import InParts, Tabular
from pipelines.console.printable import finite
from pipelines.errors import JobError
from pipelines.storage.folder import Folder

TABLE = "result.parquet"
PARTS = "result"
"""The folder of a table in parts."""
ATTEMPT = f"{PARTS}/_attempt.json"
"""Says which attempt writes the parts."""

_INSIDE = b"release"
_AT_ONCE = 1 << 14
"""Texts that are objects of Python at one time."""

_SHOWN = 12
"""Rows of each part that a report may show."""


def encode_table(release: bytes, columns: Mapping[str, Any]) -> bytes:
    """Return the Parquet file of `columns`, arrays of numpy or Arrow, with a release in its metadata.

    Integers are written as differences, which takes less than half of the time of compressing them: places
    of cells ascend, and most counts are small.
    """
    table, sink = pa.table({name: _arrow(each) for name, each in columns.items()}), pa.BufferOutputStream()
    whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    pq.write_table(
        table.replace_schema_metadata({_INSIDE: release}),
        sink,
        compression={name: "none" if name in whole else "zstd" for name in table.column_names},
        use_dictionary=False,
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    )
    return bytes(sink.getvalue().to_pybytes())


def _arrow(column: Any) -> Any:
    """Return a column as `pyarrow.table` takes it. Text becomes objects of Python, not all of it at once."""
    if getattr(column, "dtype", None) != TEXT:
        return column
    parts = (column[first : first + _AT_ONCE] for first in range(0, len(column), _AT_ONCE))
    return pa.chunked_array([pa.array(part.tolist(), pa.string()) for part in parts], pa.string())


def columns_of(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Return the columns of a table that a run wrote, as it had them."""
    return {name: _numpy(table.column(name)) for name in table.column_names}


def open_table(stored: bytes) -> pq.ParquetFile:
    """Open a Parquet file that a run wrote; the release in its metadata may be larger than Arrow expects.

    Raises:
        pyarrow.ArrowException, OSError: the file is damaged.
    """
    most = max(1, len(stored))
    return pq.ParquetFile(
        pa.BufferReader(stored), thrift_string_size_limit=most, thrift_container_size_limit=most
    )


def stacked(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of parts of a table; the types of key columns follow from the keys of each part.

    A part without keys has columns of nulls. One whose integers are all small has them as int64 where
    another one has uint64, and then none is below 0.
    """
    parts = list(tables)
    fields = []
    for column in parts[0].schema.names:
        kinds = {part.schema.field(column).type for part in parts} - {pa.null()}
        wide = kinds == {pa.int64(), pa.uint64()}
        fields.append(pa.field(column, pa.uint64() if wide else next(iter(kinds), pa.null())))
    return pa.concat_tables(part.cast(pa.schema(fields, part.schema.metadata)) for part in parts)


def stored_columns(stored: bytes, without: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the columns of a Parquet file that a run wrote, but for some, without a copy of all of them.

    Raises:
        pyarrow.ArrowException, OSError: the file is damaged.
    """
    file = open_table(stored)
    names = [name for name in file.schema_arrow.names if name not in without]
    return {name: _numpy(file.read(columns=[name]).column(name)) for name in names}


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    if not pa.types.is_string(column.type):
        return np.asarray(column.to_numpy())
    parts = (column.slice(first, _AT_ONCE) for first in range(0, len(column), _AT_ONCE))
    return np.concatenate([np.array([], TEXT), *(np.array(part.to_pylist(), TEXT) for part in parts)])


def table_of(found: Tabular | InParts, columns: Mapping[str, NDArray[Any]], grid: Grid) -> dict[str, Any]:
    """Return the columns of a table with positions as dates or timestamps.

    A distance becomes a number of the unit in which the step is written. A column of instants in UTC is an
    array of Arrow, because numpy has no zones.
    """
    times, table = grid.times, dict[str, Any](columns)
    if times is None:
        return table
    for name, (mark, axis) in found.column_marks(grid).items():
        if name not in table or times.lower[axis] is None:
            continue
        if mark is Mark.LENGTH:
            table[name] = table[name] * times.amount
        else:
            instants = times.instants(table[name], axis, mark is Mark.BETWEEN)
            tick = np.datetime_data(instants.dtype)[0]
            table[name] = pa.array(instants, pa.timestamp(tick, "UTC")) if times.zoned else instants
    return table


def encode_release(release: Mapping[str, Any]) -> bytes:
    """Return the bytes of release.json."""
    return (json.dumps(finite(release), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def release_inside(stored: bytes, where: str) -> bytes:
    """Return the release in the metadata of a Parquet file.

    Raises:
        JobError: there is none.
    """
    try:
        return bytes(open_table(stored).schema_arrow.metadata[_INSIDE])
    except (pa.ArrowException, OSError, TypeError, KeyError):
        raise JobError(f"output: {where} exists, but no run wrote it: give another folder.") from None


@dataclass(frozen=True)
class Attempt:
    """One way to draw the parts of a table. Only one attempt of a run may write parts.

    Two attempts at the same run draw from the same records if nothing but the noise differs. Then a part of
    one and a part of the other are together like the parts of one draw, because every record is in one part.
    But if the input was changed between them, or if a random row of each unit is kept, one person may be in a
    part of the first and in another part of the second: both would cost the budget. So the id is a hash of
    all that the records follow from.

    Args:
        id: equal for attempts that draw from the same records with the same noise.
        parts: how many parts there are.
    """

    id: str
    parts: int

    @classmethod
    def of(cls, parts: int, *origins: bytes) -> "Attempt":
        """Return the attempt of records that follow from `origins`."""
        digest = hashlib.sha256()
        for origin in origins:
            digest.update(len(origin).to_bytes(8, "big") + origin)
        return cls(digest.hexdigest(), parts)

    def claim(self, folder: Folder) -> None:
        """Claim the folder, once and for all, before a part is written.

        Raises:
            JobError: another attempt has claimed it.
        """
        if read_attempt(folder) is None:
            folder.create(ATTEMPT, json.dumps({"attempt": self.id, "parts": self.parts}).encode() + b"\n")
        self.check(folder, claimed=True)

    def check(self, folder: Folder, claimed: bool = False) -> None:
        """Check that no other attempt has claimed the folder, and, if it is `claimed`, that this one has.

        Raises:
            JobError: see above.
        """
        if read_attempt(folder) not in ((self,) if claimed else (None, self)):
            raise JobError(
                f"output: {folder.locate(PARTS)} is claimed by an earlier attempt at this run. Its input or "
                "the software has changed since, or another random row of each unit was kept, so its parts "
                "and new ones would not be of one draw. Wait if that attempt still runs; otherwise give "
                "another run_id, which is charged separately."
            )


def read_attempt(folder: Folder) -> Attempt | None:
    """Return the attempt that has claimed the folder, or None.

    Raises:
        JobError: the file has other contents.
    """
    stored = folder.read(ATTEMPT)
    if stored is None:
        return None
    try:
        found = json.loads(stored)
        return Attempt(str(found["attempt"]), int(found["parts"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JobError(
            f"output: {folder.locate(ATTEMPT)} exists, but no run wrote it: give another folder."
        ) from None


@dataclass(frozen=True)
class Part:
    """A stored part.

    Args:
        name: of its file in the output folder.
        rows: how many it has.
        sha256: of its bytes, hexadecimal.
        release: the release of its rows, as JSON bytes.
    """

    name: str
    rows: int
    sha256: str
    release: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, stored: bytes, where: str, job: str) -> "Part":
        """Describe stored bytes of the file `where`.

        Raises:
            JobError: they are not of the job with this hash, or no run wrote them.
        """
        inside = release_inside(stored, where)
        if json.loads(inside).get("job") != job:
            raise JobError(f"output: {where} is of another job: give another run_id or folder.")
        rows = open_table(stored).metadata.num_rows
        return cls(name, rows, hashlib.sha256(stored).hexdigest(), inside)


def part_name(number: int) -> str:
    """Return the name of the file of a part in the output folder."""
    return f"{PARTS}/part-{number:05}.parquet"


def write_part(folder: Folder, attempt: Attempt, number: int, data: bytes, job: str) -> Part:
    """Write a part unless it is there; return the one that is there.

    Nobody can see a second draw of a part: `Folder.create` makes the whole file visible at once or nothing,
    and never overwrites a file. What follows is made from the file that is there, whoever wrote it.

    Raises:
        JobError: another attempt has claimed the folder, or the file is not of this job.
    """
    attempt.claim(folder)
    name = part_name(number)
    stored = data if folder.create(name, data) else folder.read(name)
    return Part.of(name, stored or b"", folder.locate(name), job)


def join_parts(parts: Sequence[Part]) -> bytes:
    """Return release.json of a table in parts, all of them in any order.

    Whole numbers of the result are sums over the parts. All else is equal in all parts, and taken from the
    first; it also has the counts of the checks.
    """
    parts = sorted(parts, key=lambda part: part.name)
    releases = [json.loads(part.release) for part in parts]
    results = [release["result"] for release in releases if release["result"] is not None]
    result = None
    if results:
        result = {
            key: sum(one[key] for one in results) if isinstance(value, int) else value
            for key, value in results[0].items()
        }
    outcome = "not_found" if result is None else "released"
    table = [{"name": part.name, "rows": part.rows, "sha256": part.sha256} for part in parts]
    return encode_release({**releases[0], "outcome": outcome, "result": result, "table": table})


def join_stored(folder: Folder, job: str) -> bytes | None:
    """Return release.json of the stored parts of a job, or None if a part is missing.

    Raises:
        JobError: see `Part.of`.
    """
    attempt = read_attempt(folder)
    if attempt is None:
        return None
    names = [part_name(number) for number in range(attempt.parts)]
    if any(folder.size(name) is None for name in names):
        return None
    return join_parts([Part.of(name, folder.read(name) or b"", folder.locate(name), job) for name in names])


def largest_rows(folder: Folder, table: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]] | None:
    """Return the rows of each part with the largest values in its last column, one part at a time.

    Raises:
        JobError: a part is not as it was written.
    """
    tops = [top for top in _tops(folder, table) if len(top)]
    if not tops:
        return None
    shown = stacked(tops)
    return columns_of(shown)


def read_listed(folder: Folder, part: Mapping[str, Any]) -> pa.Table:
    """Read a table that release.json lists with its hash.

    Raises:
        JobError: it is not as the run wrote it.
    """
    name = str(part["name"])
    stored = folder.read(name)
    if stored is None or hashlib.sha256(stored).hexdigest() != part["sha256"]:
        what = "missing" if stored is None else "damaged"
        raise JobError(f"{folder.locate(name)} is {what}: restore the file that the run wrote.")
    return open_table(stored).read()


def _tops(folder: Folder, table: Sequence[Mapping[str, Any]]) -> Iterator[pa.Table]:
    for part in table:
        rows = read_listed(folder, part)
        yield rows.take(np.argsort(-rows.column(rows.num_columns - 1).to_numpy(), kind="stable")[:_SHOWN])
