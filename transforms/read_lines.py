"""Read a file of lines in blocks of whole lines, in bounded memory.

A record is a line: it ends with a line feed, before which may stand a carriage return, or with the file. So
whatever is wrong with a line, the others are as they would be without it.
"""

from collections.abc import Iterator

import pyarrow as pa

from transforms.file_format import GZIP
from transforms.list_files import File

MOST_LINE = 1 << 24
"""Most bytes of a line. A longer one is a line that cannot be read."""

_BLOCK = 1 << 22
"""Bytes that are read at a time."""

UNREADABLE = b'"'
"""A line that is none of CSV or JSON, in place of one that is too long."""

MARK = b"\xef\xbb\xbf"
"""The byte order mark that some programs write in front of UTF-8. It is part of the line."""


def line_blocks(file: File, opened: pa.NativeFile) -> Iterator[bytes]:
    """Yield the lines of a file in blocks; each ends with a line feed, without a carriage return before it.

    Which lines are too long follows from each of them alone, not from where blocks end.
    """
    stream = pa.CompressedInputStream(opened, "gzip") if file.path.lower().endswith(GZIP) else opened
    rest, skipping = b"", False
    while data := stream.read(_BLOCK):
        if skipping:
            end = data.find(b"\n") + 1
            if not end:
                continue
            data, skipping = data[end:], False
        end = data.rfind(b"\n") + 1
        if end:
            yield _without_returns(_bounded(rest + data[:end]))
            rest = data[end:]
        else:
            rest += data
        if len(rest) > MOST_LINE:
            yield UNREADABLE + b"\n"
            rest, skipping = b"", True
    if rest:
        yield _without_returns(_bounded(rest + b"\n"))


def _bounded(block: bytes) -> bytes:
    """Replace the first line if it is too long; no other is, because it would not fit into what is read."""
    end = block.index(b"\n")
    return block if end <= MOST_LINE else UNREADABLE + block[end:]


def _without_returns(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block
