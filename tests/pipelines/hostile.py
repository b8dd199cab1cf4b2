"""Parquet files that somebody made to hurt: of every type, damaged in every place, seeded."""

import os
import struct
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20261122
ROWS = 60


def columns(n: int = ROWS) -> dict[str, pa.Array]:
    """Return a column of every type that Parquet can hold, with nulls."""
    rng = np.random.default_rng(SEED)
    ints = [None if i % 11 == 5 else int(v) for i, v in enumerate(rng.integers(0, 100, n))]
    texts = [None if v is None else f"t{v}" * (1 + v % 5) for v in ints]
    out = {f"int{w}": pa.array(ints, getattr(pa, f"int{w}")()) for w in (8, 16, 32, 64)}
    out |= {f"uint{w}": pa.array(ints, getattr(pa, f"uint{w}")()) for w in (8, 16, 32, 64)}
    out |= {f"float{w}": out["int8"].cast(getattr(pa, f"float{w}")()) for w in (16, 32, 64)}
    out |= {
        "decimal128": out["int8"].cast(pa.decimal128(21, 2)),
        "decimal256": out["int8"].cast(pa.decimal256(60, 3)),
        "bool": pa.array([None if v is None else v > 50 for v in ints]),
        "string": pa.array(texts),
        "large_string": pa.array(texts, pa.large_string()),
        "binary": pa.array(texts).cast(pa.binary()),
        "fixed": pa.array([None if v is None else b"%05d" % v for v in ints], pa.binary(5)),
        "date32": pa.array(ints, pa.int32()).cast(pa.date32()),
        "date64": pa.array([None if v is None else v * 86_400_000 for v in ints], pa.int64()).cast(
            pa.date64()
        ),
        "timestamp": pa.array(ints, pa.timestamp("us", "Europe/Berlin")),
        "nanoseconds": pa.array(ints, pa.timestamp("ns")),
        "time32": pa.array(ints, pa.int32()).cast(pa.time32("s")),
        "time64": pa.array(ints, pa.int64()).cast(pa.time64("us")),
        "duration": pa.array([None if v is None else timedelta(seconds=v) for v in ints]),
        "category": pa.array(texts).dictionary_encode(),
        "numbers": out["int64"].dictionary_encode(),
        "list": pa.array([None if v is None else [v, None] for v in ints]),
        "struct": pa.array([None if v is None else {"a": v, "b": [str(v)]} for v in ints]),
        "map": pa.array(
            [None if v is None else [(str(v), v)] for v in ints], pa.map_(pa.string(), pa.int64())
        ),
        "null": pa.nulls(n),
        "uuid": pa.array([None if v is None else b"%016d" % v for v in ints], pa.uuid()),
        "moment": pa.array([datetime(2026, 1, 1 + (v or 0) % 28) for v in ints]),
    }
    return out


OPTIONS = (
    {"use_dictionary": False, "compression": "none"},
    {"compression": "snappy", "row_group_size": 25},
    {"compression": "zstd", "data_page_version": "2.0", "dictionary_pagesize_limit": 64},
    {"use_dictionary": False, "data_page_version": "2.0", "compression": "gzip", "write_page_checksum": True},
)
UNITS = (
    "string",
    "large_string",
    "binary",
    "fixed",
    "category",
    "int64",
    "uint64",
    "decimal128",
    "uuid",
    "bool",
)


def written(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def whole() -> Iterator[tuple[str, bytes]]:
    """Return sound files: each used column and each unit in every way of writing; names that are no names."""
    every = columns()
    for number, options in enumerate(OPTIONS):
        for kind in every:
            table = pa.table({"x": every[kind], "u": every[UNITS[number]], kind: every[kind]})
            yield f"{kind} as x {number}", written(table, **options)
            table = pa.table({"x": every["float64"], "u": every[kind]})
            yield f"{kind} as u {number}", written(table, **options)
    x, u = every["float64"], every["string"]
    yield "no rows", written(pa.table({"x": x[:0], "u": u[:0]}))
    yield "no columns", written(pa.table({}))
    yield (
        "nothing but nulls",
        written(pa.table({"x": pa.nulls(9, pa.float64()), "u": pa.nulls(9, pa.string())})),
    )
    yield "two columns of a name", written(pa.Table.from_arrays([x, x, u], names=["x", "x", "u"]))
    yield "two units of a name", written(pa.Table.from_arrays([x, u, u], names=["x", "u", "u"]))
    odd = [
        "n" * 10_000,
        "line\nbreak\tand\x1b[31mred",
        "dotted.name",
        "",
        "\u202eright to left",
        "x.y",
        "u.v",
    ]
    yield "odd names", written(pa.Table.from_arrays([x] * len(odd) + [x, u], names=[*odd, "x", "u"]))
    yield "odd names, none used", written(pa.Table.from_arrays([x] * len(odd), names=odd))
    deep = pa.array([1.0] * 9)
    for level in range(60):
        deep = pa.StructArray.from_arrays([deep], names=[f"line\nbreak{level}" * 5])
    yield "deep", written(pa.table({"x": deep, "u": u[:9]}))
    yield "a thousand columns", written(pa.table({f"c{i}": x[:2] for i in range(1000)}))
    group = pa.schema([("x", pa.float64()), ("u", pa.string())])
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, group).close()
    yield "no row groups", bytes(sink.getvalue().to_pybytes())


def broken() -> Iterator[tuple[str, bytes]]:
    """Return damaged files: cut short, bits flipped in footer, page headers and data, wrong ends."""
    rng = np.random.default_rng(SEED)
    every = columns()
    tables = [pa.table({"x": every["float64"], "u": every[unit]}) for unit in UNITS]
    tables += [pa.table({"x": every[kind], "u": every["string"]}) for kind in ("decimal128", "int32", "bool")]
    files = [written(table, **options) for table in tables for options in OPTIONS]
    for number, data in enumerate(files):
        footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        for at in rng.integers(0, len(data), 2):
            yield f"cut {number} at {at}", data[:at]
        places = [*rng.integers(4, footer, 6), *rng.integers(footer, len(data), 6), 4, 5, 6, 7]
        for at in map(int, places):
            changed = bytearray(data)
            changed[at] ^= 1 << int(rng.integers(8))
            yield f"flip {number} at {at}", bytes(changed)
        changed = bytearray(data)
        for at in rng.integers(4, footer, 8):
            changed[at] = int(rng.integers(256))
        yield f"noise {number}", bytes(changed)
    data = files[0]
    yield "empty", b""
    yield "short", b"PAR1"
    yield "twice the magic", b"PAR1PAR1"
    yield "encrypted footer", b"PARE" + data[4:-4] + b"PARE"
    yield "encrypted magic", data[:-4] + b"PARE"
    yield "wrong beginning", b"ORC1" + data[4:]
    yield "wrong end", data[:-4] + b"ORC1"
    yield "huge footer", data[:-8] + struct.pack("<I", 2**32 - 1) + b"PAR1"
    yield "no footer", data[:-8] + struct.pack("<I", 0) + b"PAR1"
    yield "noise", rng.bytes(5000)
    yield "zeros", bytes(5000)
    yield "text", b"x,y\n1,2\n"


def beside(folder: Path, sound: bytes) -> list[Path]:
    """Make what is no file, or not only one: links, pipes, folders and names; return the paths."""
    made = [
        folder / f"{name}.parquet"
        for name in ("link", "loop", "away", "pipe", "folder", "li\nne", "\x1b[31m")
    ]
    made[0].symlink_to("there")
    made[1].symlink_to(made[1].name)
    made[2].symlink_to("/etc/passwd")
    os.mkfifo(made[3])
    made[4].mkdir()
    made[5].write_bytes(sound)
    made[6].write_bytes(sound[:-9])
    return made
