"""Read Avro container files: each is one piece, read block by block.

Values are read as they are stored, without the meaning that Avro gives some of them, such as dates. Arrow
gets that meaning as a type. So a date that Python cannot represent is no error.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from transforms.list_files import File, InputError, short

_ROWS, _BYTES = 1 << 14, 1 << 26
"""Rows that are lists of Python's values at a time, and their bytes, but for those of the last one."""

_LONGEST = 1 << 30
"""Most bytes of a row. A longer one is a row of nulls: of more than 2^31 bytes Arrow makes no plain array."""

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_MEANT = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{local}timestamp-{name}"): pa.timestamp(unit, None if local else "UTC")
        for local in ("", "local-")
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}
_MOST_DIGITS = 38


def read_avro_schema(file: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the columns of the records; one of a type that is not read is a list of null, or a struct.

    Raises:
        InputError: a type contains itself. Rows of it have any depth, and a deep one would end the process.
    """
    written: Any = fastavro.block_reader(opened).writer_schema
    if _is_recursive(written, frozenset()):
        raise InputError(
            f"input.path: {short(file.name)} has a type that contains itself; give files without such types."
        )
    return _schema(written)


def _is_recursive(written: Any, around: frozenset[str]) -> bool:
    """Return whether a type contains itself, or one of the named types around it."""
    if isinstance(written, str):
        return written in around
    if isinstance(written, list):
        return any(_is_recursive(each, around) for each in written)
    inner = around | {written["name"]} if "name" in written else around
    inside = [each["type"] for each in written.get("fields", ())]
    inside += [written[key] for key in _inside(written)]
    return any(_is_recursive(each, inner) for each in inside)


def _schema(written: Any) -> pa.Schema:
    named: dict[str, Any] = {}
    return pa.schema([pa.field(each["name"], _kind(each["type"], named)) for each in written["fields"]])


def _kind(written: Any, named: dict[str, Any]) -> pa.DataType:
    """Return the type of Arrow of a type of Avro."""
    if isinstance(written, list):
        held = [each for each in written if each != "null"]
        return _kind(held[0], named) if len(held) == 1 else pa.struct([])
    if isinstance(written, str):
        return named.get(written, _PLAIN.get(written, pa.struct([])))
    kind, meaning = written["type"], written.get("logicalType")
    if not isinstance(kind, str):
        return _kind(kind, named)
    found = _MEANT.get((kind, meaning), _PLAIN.get(kind, pa.struct([])))
    if kind == "fixed":
        found = pa.binary(written["size"])
    if kind in ("array", "map"):
        found = pa.list_(pa.null())
    if meaning == "decimal" and kind in ("bytes", "fixed"):
        digits = written["precision"]
        found = pa.decimal128(digits, written.get("scale", 0)) if digits <= _MOST_DIGITS else pa.struct([])
    if "name" in written:
        named[written["name"]] = found
    return found


def read_avro(_: File, opened: pa.NativeFile, __: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of all rows. Other columns are passed over, whatever they hold."""
    blocks: Any = fastavro.block_reader(opened)
    schema, stored = _schema(blocks.writer_schema), _Stored.of(blocks.writer_schema)
    written, wanted = fastavro.parse_schema(stored.schema), fastavro.parse_schema(stored.only(columns))
    longest = sum(stored.longest(name) for name in columns)
    rows: list[Mapping[str, Any]] = []
    size = 0

    def batch() -> pa.RecordBatch:
        if not columns:
            return pa.RecordBatch.from_arrays([pa.nulls(len(rows))], names=schema.names[:1])
        arrays = [
            _array([row[name] for row in rows], schema.field(name).type, stored.symbols.get(name))
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    for block in blocks:
        for _number in range(block.num_records):
            before = block.bytes_.tell()
            row = _row(block.bytes_, written, wanted)
            own = block.bytes_.tell() - before
            rows.append(row if own <= _LONGEST else dict.fromkeys(columns))
            size += min(own, _LONGEST) + longest
            if len(rows) == _ROWS or size > _BYTES:
                yield batch()
                rows, size = [], 0
    if rows:
        yield batch()


def _row(data: Any, written: Any, wanted: Any) -> Any:
    return fastavro.schemaless_reader(data, written, wanted, handle_unicode_errors="surrogateescape")


def _inside(each: Mapping[str, Any]) -> list[str]:
    """Return the keys of a type that have another one: not `type` where that says what kind of type it is."""
    kind = (
        not isinstance(each["type"], str)
        or not {"items", "values", "fields", "size", "symbols"} & each.keys()
    )
    return [*(["type"] if kind else []), *({"items", "values"} & each.keys())]


@dataclass(frozen=True)
class _Stored:
    """A schema of what is stored: without meanings of types, and enums are the whole numbers that they are.

    Args:
        schema: of the records.
        named: its types by name.
        symbols: of the fields that are enums.
    """

    schema: Any
    named: Mapping[str, Any]
    symbols: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, written: Any) -> "_Stored":
        named: dict[str, Any] = {}
        enums: dict[str, Sequence[str]] = {}

        def plain(each: Any) -> Any:
            if isinstance(each, list):
                return list(map(plain, each))
            if isinstance(each, str):
                return "int" if each in enums else each
            if each["type"] == "enum":
                enums[each["name"]] = each["symbols"]
                return "int"
            made = {key: value for key, value in each.items() if key != "logicalType"}
            if "name" in each:
                named[each["name"]] = made
            made |= {key: plain(made[key]) for key in _inside(made)}
            if "fields" in made:
                made["fields"] = [{"name": of["name"], "type": plain(of["type"])} for of in made["fields"]]
            return made

        def symbols(each: Any) -> Sequence[str] | None:
            if isinstance(each, list):
                held = [one for one in each if one != "null"]
                return symbols(held[0]) if len(held) == 1 else None
            if isinstance(each, str):
                return enums.get(each)
            if each["type"] == "enum":
                return enums[each["name"]]
            return symbols(each["type"]) if "type" in _inside(each) else None

        schema = plain(written)
        found = {of["name"]: symbols(of["type"]) for of in written["fields"]}
        return cls(schema, named, {name: each for name, each in found.items() if each is not None})

    def longest(self, column: str) -> int:
        """Return the most bytes of a symbol of a column, which is a number in the file; 0 of another one."""
        return max((len(each.encode()) for each in self.symbols.get(column, ())), default=0)

    def only(self, columns: Sequence[str]) -> Any:
        """Return a schema of some of the fields, with all types that they name."""
        seen: set[str] = set()

        def alone(each: Any) -> Any:
            if isinstance(each, list):
                return list(map(alone, each))
            if isinstance(each, str):
                return each if each in seen or each not in self.named else alone(self.named[each])
            seen.update([each["name"]] if "name" in each else [])
            made = each | {key: alone(each[key]) for key in _inside(each)}
            if "fields" in made:
                made["fields"] = [of | {"type": alone(of["type"])} for of in made["fields"]]
            return made

        fields = [of for of in self.schema["fields"] if of["name"] in columns]
        return alone(self.schema | {"fields": fields})


def _array(values: Sequence[Any], kind: pa.DataType, symbols: Sequence[str] | None) -> pa.Array:
    if symbols is not None:
        return pa.array(_each(lambda at: symbols[at] if 0 <= at < len(symbols) else None, values), kind)
    if pa.types.is_string(kind):  # stored as bytes, which need not be UTF-8
        return pa.array(
            _each(lambda text: text.encode("utf-8", "surrogateescape"), values), pa.binary()
        ).view(kind)
    if pa.types.is_decimal(kind):
        return pa.array(_each(lambda stored: _decimal(stored, kind), values), kind)
    if pa.types.is_temporal(kind):
        short = kind.bit_width == 32  # and what is stored may be longer: then it is no date and no time
        held = (
            _each(lambda stored: stored if -(2**31) <= stored < 2**31 else None, values) if short else values
        )
        return pa.array(held, pa.int32() if short else pa.int64()).view(kind)
    return pa.array(values, kind)


def _each(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    return [None if value is None else function(value) for value in values]


def _decimal(stored: bytes, kind: pa.DataType) -> Decimal | None:
    """Return a decimal, or None if it has more digits than its type."""
    whole = int.from_bytes(stored, "big", signed=True)
    digits = str(abs(whole)) if abs(whole) < 10**kind.precision else ""
    return Decimal((int(whole < 0), tuple(map(int, digits)), -kind.scale)) if digits else None
