"""Read JSON lines: one object a line, of which the values of used names become texts.

A number is the text as it is written, and true and false are texts, too; see `transforms.parse_texts`. A
null, a list, an object and a name that is not there are null. A line that is not an object of JSON in UTF-8
is a row of nulls. So is a line longer than `transforms.read_lines.MOST_LINE`. A blank line is no row.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from transforms.list_files import File
from transforms.parse_texts import TEXT, parse_texts
from transforms.read_lines import line_blocks

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda _: None)


def read_json_schema(file: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the columns that the job uses: which names the lines have is not known before they are read."""
    next(line_blocks(file, opened), None)  # whether the file can be opened and decompressed
    return pa.schema(list(file.types))


def read_json(file: File, opened: pa.NativeFile, _: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of all rows, of the types of `file`."""
    used, types = list(columns) or [""], dict(file.types)
    for block in line_blocks(file, opened):
        rows = [_parsed(line) for line in block.split(b"\n") if line.strip()]
        texts = ([_text(row.get(name)) for row in rows] for name in used)
        arrays = [
            parse_texts(pa.array(text, pa.binary()), types.get(name, TEXT))
            for text, name in zip(texts, used, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=used)


def _parsed(line: bytes) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError):  # of many brackets
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> bytes | None:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    try:
        return value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:  # half of a pair, such as \ud800
        return None
