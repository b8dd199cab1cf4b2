"""Whether a file can be read follows from its types and its form: no value of one row is an error.

Every kind of column of texts, in every form that files have, as key, unit and part of a condition, with one
odd text in one row. Libraries have functions that fail for some texts, or for what becomes of a column where
one is long.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.domain import Grid
from core.labels import Labels
from transforms.bound_units import Bounding, bound_in_memory
from transforms.contributions import Contributing
from transforms.group_keys import GroupKeys
from transforms.open_source import Source, open_source
from transforms.parse_expression import parse_expression
from transforms.preparation import AS_THEY_ARE, Preparation
from transforms.read_blocks import read_in_memory

GRID = Grid((0.0,), (1.0,), 1.0)
ROWS = 6000
ODD: dict[str, bytes | None] = {
    "none": None,
    "empty": b"",
    "fit": b"z" * 250,
    "long": b"z" * 300,
    "longer": b"z" * 20_000,
    "not UTF-8": b"\xff\xfe" * 3,
    "long, not UTF-8": b"\xff\xfe" * 300,
    "escaped": b'\x00"\\\n',
}
TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.uint16(), pa.large_string()),
]
FORMS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False},
    "dictionary": {},
    "full dictionary": {"dictionary_pagesize_limit": 4000, "data_page_size": 4000, "write_batch_size": 100},
    "small groups": {"row_group_size": 500},
    "pages of version 2": {"data_page_version": "2.0", "data_page_size": 4000, "write_batch_size": 100},
}


def texts(odd: bytes | None) -> pa.Array:
    """Return texts of which the odd one is in the middle, and of which many are new towards the end."""
    named = [b"k%d" % (place % 400) for place in range(ROWS - 300)] + [
        b"new%d" % place for place in range(300)
    ]
    named[ROWS // 2] = odd
    return pa.array(named, pa.binary()).view(pa.string())


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return column.cast(kind)
    encoded = column.dictionary_encode()
    values, indices = encoded.dictionary.cast(kind.value_type), encoded.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, values)


def files(folder: Path, odd: bytes | None) -> Iterator[tuple[str, Path]]:
    for number, kind in enumerate(TYPES):
        table = pa.table({"t": in_type(texts(odd), kind), "u": np.arange(ROWS) % 700, "x": np.ones(ROWS)})
        for form, options in FORMS.items():
            path = folder / f"{number}-{form}.parquet"
            pq.write_table(table, path, **options)
            yield f"{kind}, {form}", path
        path = folder / f"{number}.arrow"
        with pa.ipc.new_file(path, table.schema) as writer:
            for batch in table.to_batches(1000):
                writer.write_batch(batch)
        yield f"{kind}, arrow", path


PRIVATE, PUBLIC = GroupKeys(("t",), (None,)), GroupKeys(("t",), (None,), Labels(['["k1"]', '["k2"]']))


def by_rows(keys: GroupKeys | None, where: str | None = None) -> Callable[[str], int]:
    def records(path: str) -> int:
        prepared = AS_THEY_ARE if where is None else Preparation(parse_expression(where))
        source = open_source(path, ["x"], groups=keys, preparation=prepared)
        return sum(len(block.ids) for block in read_in_memory(source, GRID))

    return records


def by_units(unit: str, keys: GroupKeys | None) -> Callable[[str], int]:
    def records(path: str) -> int:
        source: Source = open_source(path, ["x"], unit, groups=keys)
        bounding = Bounding.of(source, GRID, "one", bytes(16))
        bounds = bounding if keys is None else Contributing.of(source, bounding, 1000, 1000)
        return sum(len(block.ids) for block in bound_in_memory(source, bounds))

    return records


ROLES = {
    "private key": by_rows(PRIVATE),
    "public key": by_rows(PUBLIC),
    "condition": by_rows(None, "t == 'k1'"),
    "unit": by_units("t", None),
    "private key of units": by_units("u", PRIVATE),
    "public key of units": by_units("u", PUBLIC),
}


@pytest.mark.parametrize(("role", "odd"), [*itertools.product(ROLES, ODD)])
def test_one_odd_text_is_no_error(tmp_path: Path, role: str, odd: str) -> None:
    found = {name: ROLES[role](str(path)) for name, path in files(tmp_path, ODD[odd])}
    left_out = odd in ("none", "long", "longer", "long, not UTF-8")
    expected = {
        "private key": ROWS - left_out,
        "public key": 30,
        "condition": 15,
        "unit": 700 + (odd != "none"),
        "private key of units": ROWS - left_out,
        "public key of units": 30,
    }
    # the row before was k200, of which others remain
    assert found == dict.fromkeys(found, expected[role])
