"""Rows made ready: columns that are looked up or derived, and rows that are left out by a condition.

All of this looks at one row alone, and at public tables. So a row more or less in the input is a row more or
less, or no change, in what is prepared, and every sensitivity of a task holds as it is. A row keeps its
identity, which is its place in its file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from transforms.evaluate_expression import evaluate
from transforms.expression_values import KINDS, TRUTH, column_values, with_zone
from transforms.join_table import Join, LookedUp
from transforms.list_files import File, InputError, short
from transforms.parse_expression import Call, ExpressionError, Node, columns_of, longest_text, near
from transforms.parse_texts import parse_texts


@dataclass(frozen=True)
class Preparation:
    """How rows of a file become the rows that a task sees.

    Args:
        where: a condition; rows for which it is false or null are left out. None keeps all rows.
        derive: name and expression of each derived column. An expression sees columns of the files and of the
            joined table, and `where` sees derived columns, too.
        join: a public table, or None.
    """

    where: Node | None = None
    derive: tuple[tuple[str, Node], ...] = ()
    join: Join | None = None

    def __bool__(self) -> bool:
        return bool(self.where or self.derive or self.join)

    @property
    def joined(self) -> tuple[str, ...]:
        """Names of the columns that rows get from the joined table."""
        return () if self.join is None else self.join.columns

    def makes(self, name: str) -> bool:
        """Return whether a column is derived or looked up."""
        return name in self.joined or name in dict(self.derive)

    def sources(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of a file that `where` needs, and the columns `names` where they are made."""
        derived, condition = dict(self.derive), () if self.where is None else tuple(columns_of(self.where))
        seen = [
            each
            for name in (*filter(self.makes, names), *condition)
            for each in (columns_of(derived[name]) if name in derived else (name,))
        ]
        on = "" if self.join is None else self.join.on
        return tuple(dict.fromkeys(on if name in self.joined else name for name in seen))

    def reads(self) -> dict[str, str]:
        """Return the columns of a file that it needs, each with the field of the job that first names it."""
        named = [(f"input.derive.{name}", each) for name, node in self.derive for each in columns_of(node)]
        named += [] if self.where is None else [("input.where", each) for each in columns_of(self.where)]
        named += [] if self.join is None else [("input.join.on", self.join.on)]
        return {name: field for field, name in reversed(named) if not self.makes(name)}

    def bytes_beside(self, names: Sequence[str]) -> int:
        """Return the most bytes of texts that a row gets: from the joined table, and from the job itself."""
        nodes = [*dict(self.derive).values(), *(() if self.where is None else (self.where,))]
        seen = {*names, *(each for node in nodes for each in columns_of(node))}
        joined = 0 if self.join is None else self.join.longest(seen)
        return joined + max(map(longest_text, nodes), default=0)

    def prepare(self, batch: pa.RecordBatch, names: Sequence[str]) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return the columns `names` of all rows, and which rows to keep; None for all of them.

        Args:
            batch: n rows with the columns of `sources`, and those of `names` that are not made.
            names: names of columns of the batch, of the joined table and of derived ones.

        Raises:
            ExpressionError: see `transforms.evaluate_expression.evaluate`.
        """
        rows = _Rows(self, batch)
        columns = [rows.column(name) for name in names]
        kept = None if self.where is None else pc.fill_null(rows.evaluated(self.where), False)
        return pa.RecordBatch.from_arrays(columns, names=list(names)), kept

    def schema(self, file: File, schema: pa.Schema) -> pa.Schema:
        """Return the schema of a file with the columns that its rows get. No row is read.

        Raises:
            InputError: an expression or the key does not fit the columns, or two columns have one name.
        """
        rows, added = _Rows(self, _without_rows(schema)), dict[str, pa.DataType]()
        made = [("input.join.columns", name) for name in self.joined]
        made += [(f"input.derive.{name}", name) for name, _ in self.derive]
        for field, name in made:
            if name in schema.names:
                raise InputError(f"{field}: {short(file.name)} has a column {short(name)}, too: rename one.")
        for name, _ in self.derive:
            if name in self.joined:
                raise InputError(
                    f"input.derive.{name}: the joined table has a column {name}, too: rename one."
                )
        if self.join is not None:
            with _of_field("input.join.on", file):
                added |= {name: rows.joined.columns[name].type for name in self.joined}
        for name, node in self.derive:
            with _of_field(f"input.derive.{name}", file):
                added[name] = rows.evaluated(node, derived=False).type
        if self.where is not None:
            with _of_field("input.where", file):
                kind = rows.evaluated(self.where).type
                if kind != TRUTH:
                    raise ExpressionError(f"it gives {KINDS[kind]}, but must be true or false")
        for name, kind in added.items():
            schema = schema.append(pa.field(name, kind))
        return schema

    def check_zones(self, files: Sequence[File], schemas: Sequence[pa.Schema]) -> None:
        """Check that timestamps that expressions see have a zone in all files or in none.

        Those with one are read in UTC and others as they are written, so an hour of one file would be another
        in the next.

        Raises:
            InputError: a column has a zone in some files alone.
        """
        for name, field in self.reads().items():
            first: dict[bool, File] = {}
            for file, schema in zip(files, schemas, strict=True):
                for place in schema.get_all_field_indices(name):
                    kind = schema.field(place).type
                    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
                    if pa.types.is_timestamp(kind):
                        first.setdefault(kind.tz is not None, file)
            if len(first) > 1:
                zoned, other = short(first[True].name), short(first[False].name)
                raise InputError(
                    f"{field}: {short(name)} has a zone in {zoned}, where it is read in UTC, but none in "
                    f"{other}; it must have one in all files or in none."
                )

    def may_keep(self, files: Sequence[File]) -> bool:
        """Return whether the folders of any file fulfil `where`, as far as it is about folders alone.

        Where they do not, no row of the file is kept, whatever its rows are. Names of folders are public.

        Args:
            files: all of the same folders, with types for those that `where` sees.
        """
        names = {name for name, _ in files[0].folders}
        seen = [(each, set(columns_of(each))) for each in _conditions(self.where)]
        conditions = [each for each, columns in seen if columns and columns <= names]
        if not conditions:
            return True
        types = dict(files[0].types)
        columns = {
            name: parse_texts(
                pa.array([dict(file.folders)[name] for file in files], pa.binary()), types[name]
            )
            for name in dict.fromkeys(name for each in conditions for name in columns_of(each))
        }
        rows = _Rows(self, pa.RecordBatch.from_pydict(columns))
        kept = [pc.fill_null(rows.evaluated(each), False) for each in conditions]
        return bool(pc.any(reduce(pc.and_, kept)).as_py())


AS_THEY_ARE = Preparation()
"""The preparation that changes nothing."""


class _Rows:
    """The columns of a batch with those that its rows get, each made once."""

    def __init__(self, preparation: Preparation, batch: pa.RecordBatch) -> None:
        self.preparation, self.derive, self.batch = preparation, dict(preparation.derive), batch
        self.made: dict[str, pa.Array] = {}
        self.held: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """Return a column as tasks read it: one of the file is as it is there."""
        return self.value(name) if self.preparation.makes(name) else self.batch.column(name)

    def value(self, name: str) -> pa.Array:
        """Return a column as `where` sees it."""
        if name not in self.derive:
            return self.known(name)
        if name not in self.made:
            self.made[name] = self.evaluated(self.derive[name], derived=False)
        return self.made[name]

    def known(self, name: str) -> pa.Array:
        """Return a column as an expression of a derived column sees it."""
        if name not in self.held:
            joins = name in self.preparation.joined
            self.held[name] = self.joined.column(name) if joins else self.zoned(name)
        return self.held[name]

    def evaluated(self, node: Node, derived: bool = True) -> pa.Array:
        """Evaluate an expression, which may see `derived` columns."""
        return evaluate(node, self.value if derived else self.known, self.batch.num_rows)

    @cached_property
    def joined(self) -> LookedUp:
        """The places of the rows in the joined table."""
        join = cast(Join, self.preparation.join)
        return join.look_up(self.read(join.on))

    def zoned(self, name: str) -> pa.Array:
        """Return a column of the file as an expression sees it."""
        return with_zone(self.read(name), self.batch.column(name).type)

    def read(self, name: str) -> pa.Array:
        """Return a column of the file with a type of expressions, without its zone."""
        if name in self.derive:
            raise ExpressionError(f"it names the derived column {short(name)}, which only input.where may")
        names = self.batch.schema.names
        if names.count(name) != 1:
            nearest = near(name, [*names, *self.preparation.joined])
            what = "occurs more than once" if name in names else f"is not there{nearest}"
            raise ExpressionError(f"it names the column {short(name)}, which {what}")
        return column_values(name, self.batch.column(name))


def _without_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_empty(field.type) for field in schema], names=schema.names)


def _empty(kind: pa.DataType) -> pa.Array:
    try:
        return pa.nulls(0, kind)
    except (pa.ArrowException, TypeError):  # of a type that no expression reads
        return pa.nulls(0)


def _conditions(where: Node | None) -> Iterator[Node]:
    """Yield the conditions that all must be true for a row to be kept."""
    if isinstance(where, Call) and where.function == "and":
        for each in where.arguments:
            yield from _conditions(each)
    elif where is not None:
        yield where


@contextmanager
def _of_field(field: str, file: File) -> Iterator[None]:
    try:
        yield
    except ExpressionError as error:
        raise InputError(f"{field}, for {short(file.name)}: {error}.") from None
