"""Read CSV: RFC 4180 with commas, a header, and one record a line.

A field may stand in double quotes, in which a quote is doubled and a comma is a character; a line feed is
not: it always ends the record. A line with another number of fields than the header, or with a quote
elsewhere, is a row of nulls. So is a line longer than `transforms.read_lines.MOST_LINE`. An empty line is no
row. An empty field is null, and a quoted empty one is the empty text.

Lines are split by numpy, a block at a time. Let q(i) be the number of quotes before byte i. A comma at i in a
line that begins at s separates fields if q(i) - q(s) is even. So an odd quote spoils its own line alone.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from transforms.list_files import File, InputError, short
from transforms.parse_texts import TEXT, parse_texts
from transforms.read_lines import MARK, line_blocks

_QUOTED = r'(?s)^"(?:[^"]|"")*"$'
_LINE_FEED, _QUOTE, _COMMA = b'\n",'
_BYTES = pa.binary()

Ints = NDArray[np.int64]


def read_csv_schema(file: File, opened: pa.NativeFile) -> pa.Schema:
    """Return the columns of the header, with the types of `file`, or null where it has none.

    Raises:
        InputError: the file has no header, or one with a carriage return within. The text never quotes it,
            because it may be a row.
    """
    types = dict(file.types)
    return pa.schema([pa.field(name, types.get(name, pa.null())) for name in _header(file, opened)[0]])


def read_csv(file: File, opened: pa.NativeFile, _: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of all rows, of the types of `file`."""
    names, blocks = _header(file, opened)
    used, types = list(columns) or names[:1], dict(file.types)
    places = [names.index(name) for name in used]
    for block in blocks:
        texts = split_lines(block, len(names), places)
        arrays = [parse_texts(text, types.get(name, TEXT)) for text, name in zip(texts, used, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=used)


def _header(file: File, opened: pa.NativeFile) -> tuple[list[str], Iterator[bytes]]:
    """Return the names of the columns, and blocks of the lines after them."""
    blocks = line_blocks(file, opened)
    first, feed, rest = next(blocks, b"").removeprefix(MARK).partition(b"\n")
    fields = _count(first)
    texts = split_lines(first + feed, fields, range(fields)) if first else []
    try:
        decoded = [text.as_py().decode().strip() for [text] in texts]
    except (AttributeError, UnicodeDecodeError, ValueError):  # a name is empty, or the line is no record
        decoded = []
    if not decoded:
        raise InputError(
            f"input.path: {short(file.name)} has no header; the first line of a CSV file names its columns, "
            "in UTF-8 and with commas between the names."
        )
    if any("\r" in name for name in decoded):  # the rows would be a part of the header
        raise InputError(
            f"input.path: {short(file.name)} has a carriage return within its first line; a line of a CSV "
            "file ends with a line feed, before which may stand a carriage return."
        )
    return decoded, _after(rest, blocks)


def _after(rest: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if rest:
        yield rest
    yield from blocks


def _count(line: bytes) -> int:
    """Return the number of fields of a line."""
    return 1 + sum(part.count(b",") for part in line.split(b'"')[::2])


def split_lines(block: bytes, fields: int, places: Sequence[int]) -> list[pa.Array]:
    """Return fields of each line that is not empty.

    Args:
        block: lines, each with a line feed at its end.
        fields: how many fields a line has.
        places: which of them are returned.

    Returns:
        For each place the fields of n lines, shape (n,), bytes; null where they are empty, or the line is not
        a record.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    ends, quotes = np.flatnonzero(data == _LINE_FEED), np.flatnonzero(data == _QUOTE)
    starts, separates = np.append(0, ends[:-1] + 1), data == _COMMA
    if len(quotes):
        commas = np.flatnonzero(separates)
        before = np.searchsorted(quotes, starts)[np.searchsorted(ends, commas)]
        separates[commas[(np.searchsorted(quotes, commas) - before) % 2 == 1]] = False
    separates[ends] = True
    separators = np.flatnonzero(separates)
    last = np.flatnonzero(data[separators] == _LINE_FEED)  # the number of the field that ends each line
    sound = np.diff(last, prepend=-1) == fields
    # Each field with the separator after it: these are next to one another, so no byte is copied.
    offsets = pa.py_buffer(np.append(0, separators + 1).astype(np.int32))
    joined = pa.Array.from_buffers(_BYTES, len(separators), [None, offsets, pa.py_buffer(block)])
    if len(quotes):
        quoted = np.searchsorted(separators, quotes)
        quoted = quoted[np.append(True, quoted[1:] > quoted[:-1])]
        texts = pc.binary_slice(joined.take(pa.array(quoted)), 0, -1)
        wrong = quoted[~pc.match_substring_regex(texts, _QUOTED).to_numpy(zero_copy_only=False)]
        sound[np.searchsorted(last, wrong)] = False
    held = ends > starts
    firsts, sound = (last - fields + 1)[held], sound[held]
    return [_fields(joined, firsts + place, sound, len(quotes) > 0) for place in places]


def _fields(joined: pa.Array, numbers: Ints, sound: NDArray[np.bool_], quotes: bool) -> pa.Array:
    """Return some fields without the separators after them and the quotes around them."""
    found = joined.take(pa.array(np.where(sound, numbers, 0), mask=~sound))
    found = pc.binary_slice(found, 0, -1)
    texts = pc.if_else(pc.greater(pc.binary_length(found), 0), found, pa.scalar(None, _BYTES))
    if not quotes:
        return texts
    quoted = pc.starts_with(texts, '"')
    inside = pc.replace_substring(pc.binary_slice(texts, 1, -1), '""', '"')
    return pc.if_else(quoted, inside, texts)
