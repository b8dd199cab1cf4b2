"""Types of the columns that have none in their files: of CSV, of JSON lines, and of folders `key=value`.

They follow from the job alone, never from rows, in this order:

1. `input.types` of the job.
2. How the column is used. An axis has numbers, or integers where its domain is too large for float64, or the
   dates or timestamps that its domain has. A unit is text, a count integers, and a key of a group what the
   listed keys are, or a timestamp where it is cut, or text.
3. An order, a unit that is also an axis, and a column in an expression or of a join must have a type in the
   job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from core.domain import Grid
from core.times import Times
from transforms.file_format import WITHOUT_TYPES
from transforms.group_keys import GroupKeys
from transforms.key_labels import values_of
from transforms.list_files import File, InputError, short
from transforms.missing_column import not_once
from transforms.parse_texts import DATE, INTEGER, NUMBER, TEXT, TIME, TRUTH
from transforms.preparation import Preparation

KINDS = {
    "integer": INTEGER,
    "number": NUMBER,
    "text": TEXT,
    "boolean": TRUTH,
    "date": DATE,
    "timestamp": TIME,
}
"""Types that a job may give, by name."""

_NAMES = ", ".join(list(KINDS)[:-1]) + f" or {list(KINDS)[-1]}"

Opened = tuple[Sequence[File], Sequence[pa.Schema], Sequence[int]]
"""Files with their versions, the schema of each, and how many descriptors each gives."""

Uses = Mapping[str, pa.DataType | None]
"""The type of each column by how it is used; None where the job must give one."""


def exact_axes(columns: Sequence[str], grid: Grid) -> tuple[str, ...]:
    """Return the columns that must be integers, because float64 does not hold every point of their axes."""
    return tuple(name for axis, name in enumerate(columns) if grid.wide and not grid.serves_floats(axis))


def used_types(
    columns: Sequence[str],
    unit: str | None = None,
    order: str | None = None,
    count: str | None = None,
    groups: GroupKeys | None = None,
    times: Times | None = None,
    exact: Sequence[str] = (),
) -> Uses:
    """Return the types of columns by how a question uses them; see `transforms.open_source.open_source`.

    Raises:
        InputError: a column is used in two ways, which need two types.
    """
    axes = [(name, _of_axis(axis, name in exact, times)) for axis, name in enumerate(columns)]
    uses = [(name, None if name == unit else kind) for name, kind in axes]
    uses += [(order, None)] if order is not None else []
    uses += [(unit, TEXT)] if unit is not None and unit not in columns else []
    uses += [(count, INTEGER)] if count is not None else []
    if groups is not None:
        keys = _of_keys(groups)
        uses += [(name, kind) for name, kind in zip(groups.columns, keys, strict=True) if name not in columns]
    found: dict[str, pa.DataType | None] = {}
    for name, kind in uses:
        found[name] = kind if found.get(name) is None else found[name]
    return found


def _of_axis(axis: int, exact: bool, times: Times | None) -> pa.DataType:
    if times is None or times.lower[axis] is None:
        return INTEGER if exact else NUMBER
    if times.tick == "D":
        return DATE
    return pa.timestamp("ns" if times.tick == "ns" else "us", "UTC" if times.zoned else None)


def _of_keys(groups: GroupKeys) -> list[pa.DataType]:
    """Return the type of each key column."""
    kinds: list[set[type]] = [set() for _ in groups.columns]
    for keys in values_of(groups.labels or ()):
        for found, values in zip(kinds, zip(*keys, strict=True), strict=True):
            found.update(map(type, values))
    named = [TRUTH if kind == {bool} else INTEGER if kind == {int} else TEXT for kind in kinds]
    return [kind if unit is None else TIME for kind, unit in zip(named, groups.truncate, strict=True)]


def give_types(
    opened: Opened, given: Mapping[str, str] | None, preparation: Preparation, uses: Sequence[Uses]
) -> Opened:
    """Return what was opened with a type for each used column that has none in its file.

    Args:
        opened: see `transforms.open_source.open_files`.
        given: the name of the type of a column, as the job gives it.
        preparation: how rows are prepared.
        uses: of each question.

    Raises:
        InputError: the job gives a type to a column that is not there or has one, or gives none where it
            must, or two questions need two types.
    """
    files, schemas, pieces = opened
    typed = [
        _typed(file, schema, given or {}, preparation, uses)
        for file, schema in zip(files, schemas, strict=True)
    ]
    return [file for file, _ in typed], [schema for _, schema in typed], pieces


def _typed(
    file: File, schema: pa.Schema, given: Mapping[str, str], preparation: Preparation, uses: Sequence[Uses]
) -> tuple[File, pa.Schema]:
    folders, lines = dict(file.folders), file.format == "JSON lines"

    def bare(name: str) -> bool:
        """Return whether a column has no type in the file."""
        return name in folders or ((lines or name in schema.names) and file.format in WITHOUT_TYPES)

    for name in given:
        if not bare(name):
            if schema.names.count(name) != 1:
                raise not_once("input.types", name, file, schema.names)
            raise InputError(
                f"input.types: {short(name)} is {schema.field(name).type} in {short(file.name)}; give types "
                "to columns of CSV, of JSON lines and of folders key=value only."
            )
    read = preparation.reads()
    wanted = [(name, kind) for use in uses for name, kind in use.items() if not preparation.makes(name)]
    types: dict[str, pa.DataType] = {}
    for name, kind in (*wanted, *((name, None) for name in read)):
        if kind is None and file.format == "CSV" and not bare(name):  # before an expression quotes its header
            raise not_once(read.get(name, "input.order"), name, file, schema.names)
        if bare(name):
            found = _chosen(file, name, kind, given, types.get(name))
            types[name] = found
    names = dict.fromkeys((*schema.names, *types)) if lines else schema.names
    fields = [pa.field(n, types[n]) if n in types else schema.field(at) for at, n in enumerate(names)]
    return replace(file, types=tuple(types.items())), pa.schema(fields)


def _chosen(
    file: File, name: str, kind: pa.DataType | None, given: Mapping[str, str], before: pa.DataType | None
) -> pa.DataType:
    """Return the type of a column that is used as `kind`, and by another question as `before`."""
    if name in given and not (
        given[name] == "timestamp" and kind is not None and pa.types.is_timestamp(kind)
    ):
        kind = before if before is not None and given[name] == "timestamp" else KINDS[given[name]]
    kind = before if kind is None else kind
    allowed = f"give it one in input.types: {_NAMES}"
    if kind is None:
        raise InputError(
            f"input.types: {short(name)} has no type in {short(file.name)} or in the job; {allowed}."
        )
    if before is not None and kind != before:
        raise InputError(
            f"input.types: {short(name)} has no type in {short(file.name)}, and is used as {before} and as "
            f"{kind}; {allowed}."
        )
    return kind
