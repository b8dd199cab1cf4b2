"""The same rows in files of every format."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

_AVRO: Mapping[str, Any] = {
    "int64": "long",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "date32[day]": {"type": "int", "logicalType": "date"},
    "timestamp[us]": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamp[us, tz=UTC]": {"type": "long", "logicalType": "timestamp-micros"},
}


def texts(column: pa.ChunkedArray) -> list[str | None]:
    """Return values as other programs write them into files of text."""
    if pa.types.is_timestamp(column.type):
        zone = "" if column.type.tz is None else "Z"
        bare = column.cast(pa.timestamp(column.type.unit))
        return [None if each is None else each.isoformat() + zone for each in bare.to_pylist()]
    return [None if each is None else str(each) for each in column.to_pylist()]


def _csv(table: pa.Table, quote: bool) -> bytes:
    def field(text: str | None) -> str:
        if text is None:
            return ""
        return '"' + text.replace('"', '""') + '"' if quote or set(text) & set('",') or not text else text

    columns = [[field(text) for text in texts(column)] for column in table.columns]
    lines = [",".join(table.column_names), *map(",".join, zip(*columns, strict=True))]
    return "\n".join(lines).encode() + b"\n" * (not quote)


def _json(table: pa.Table) -> bytes:
    plain = [pa.types.is_primitive(kind) and not pa.types.is_temporal(kind) for kind in table.schema.types]
    columns = [
        column.to_pylist() if bare else texts(column)
        for column, bare in zip(table.columns, plain, strict=True)
    ]
    rows = (dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True))
    return "".join(json.dumps(row) + "\r\n" for row in rows).encode()


def _parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=100)


def _arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)


def _views(table: pa.Table, path: Path) -> None:
    texts = [kind == pa.string() for kind in table.schema.types]
    kinds = [pa.string_view() if text else kind for text, kind in zip(texts, table.schema.types, strict=True)]
    _arrow(table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True)))), path)


def _avro(table: pa.Table, path: Path) -> None:
    fields = [{"name": field.name, "type": ["null", _AVRO[str(field.type)]]} for field in table.schema]
    with path.open("wb") as file:
        schema = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(file, schema, table.to_pylist(), codec="deflate", sync_interval=500)


WRITERS: Mapping[str, Callable[[pa.Table, Path], object]] = {
    ".parquet": _parquet,
    ".csv": lambda table, path: path.write_bytes(_csv(table, False)),
    ".csv.gz": lambda table, path: path.write_bytes(gzip.compress(_csv(table, True))),
    ".jsonl": lambda table, path: path.write_bytes(_json(table)),
    ".ndjson.gz": lambda table, path: path.write_bytes(gzip.compress(_json(table))),
    ".feather": _arrow,
    ".arrow": _views,
    ".avro": _avro,
}
"""How a table is written, by the ending of the name."""
