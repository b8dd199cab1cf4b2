"""Read JSON lines: one object a line, of which the values of used names become texts.

A number is the text as it is written, and true and false are texts, too; see `transforms.parse_texts`. A
null, a list, an object and a name that is not there are null. A line that is not an object of JSON in UTF-8
is a row of nulls. So is a line longer than `transforms.read_lines.MOST_LINE`, or with lists and objects more
than 100 deep. A blank line is no row. A byte order mark in front of a line is left out, of the first line as
of any other: how a line is read must not depend on the lines before it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transforms.list_files import File
from transforms.parse_texts import TEXT, parse_texts
from transforms.read_lines import MARK, line_blocks

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda _: None)

_MOST_DEEP = 100
"""Most objects and lists around a value. Python's own limit depends on the calls around the reader."""

_QUOTE, _OPENING, _CLOSING = ord('"'), b"[{", b"]}"


def read_json_schema(file: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the columns that the job uses: which names the lines have is not known before they are read."""
    next(line_blocks(file, opened), None)  # whether the file can be opened and decompressed
    return pa.schema(list(file.types))


def read_json(file: File, opened: pa.NativeFile, _: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of all rows, of the types of `file`."""
    used, types = list(columns) or [""], dict(file.types)
    for block in line_blocks(file, opened):
        lines = (line.removeprefix(MARK) for line in block.split(b"\n"))
        rows = [_parsed(line) for line in lines if line.strip()]
        texts = ([_text(row.get(name)) for row in rows] for name in used)
        arrays = [
            parse_texts(pa.array(text, pa.binary()), types.get(name, TEXT))
            for text, name in zip(texts, used, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=used)


def _parsed(line: bytes) -> Mapping[str, Any]:
    if line.count(b"[") + line.count(b"{") > _MOST_DEEP and _depth(line) > _MOST_DEEP:
        return {}
    try:
        value = _DECODER.decode(line.decode())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _depth(line: bytes) -> int:
    """Return how many brackets are open at most, outside of texts, up to where the line is JSON."""
    bare = np.frombuffer(line.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    outside = ~np.logical_xor.accumulate(bare == _QUOTE)
    opened, closed = (np.isin(bare, list(ends)) & outside for ends in (_OPENING, _CLOSING))
    return int(np.cumsum(opened.astype(np.int8) - closed.astype(np.int8), dtype=np.int32).max(initial=0))


def _text(value: object) -> bytes | None:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    try:
        return value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:  # half of a pair, such as \ud800
        return None
