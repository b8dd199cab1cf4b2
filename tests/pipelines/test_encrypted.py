"""A Parquet file with columns that are encrypted is refused before a charge, if a job uses one of them."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from tests.pipelines.jobs import LINE, changes

ROWS = 200
COLUMNS = pa.table(
    {
        "x": [i / ROWS for i in range(ROWS)],
        "u": range(ROWS),
        "key": [f"k{i % 2}" for i in range(ROWS)],
        "a.b": [0.5] * ROWS,
        "parts": [[i] for i in range(ROWS)],
    }
)
COUNTS: dict[str, Any] = {**changes("statistics"), **LINE, "params": {"measures": ["count"]}}


class _Keys(encryption.KmsClient):
    """Keeps keys as they are."""

    def __init__(self, _: encryption.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(key)


def encrypted(path: Path, columns: list[str], table: pa.Table = COLUMNS, **options: Any) -> None:
    """Write a table with these columns encrypted, and by default with a footer in plain text."""
    settings = {"plaintext_footer": True, **options}
    how = encryption.EncryptionConfiguration("footer", column_keys={"columns": columns}, **settings)
    factory = encryption.CryptoFactory(_Keys)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


USES: dict[str, tuple[str, dict[str, Any], str]] = {
    "columns": ("x", COUNTS, "input.columns: x is encrypted in part.parquet; used columns must be"),
    "unit": ("u", {**COUNTS, "input.unit": "u"}, "input.unit: u is encrypted in part.parquet;"),
    "order": (
        "u",
        {**changes("median"), **LINE, "input.unit": "key", "input.keep": "last", "input.order": "u"},
        "input.order: u is encrypted in part.parquet;",
    ),
    "count": ("u", {**COUNTS, "input.count": "u"}, "input.count: u is encrypted in part.parquet;"),
    "group": (
        "key",
        {**COUNTS, "group_by": {"columns": ["key"], "keys": ["k0", "k1"]}},
        "group_by.columns: key is encrypted in part.parquet;",
    ),
    "where": ("u", {**COUNTS, "input.where": "u > 3"}, "input.where, for part.parquet: u is encrypted, but"),
    "derive": (
        "u",
        {**COUNTS, "input.columns": ["z"], "input.derive": {"z": "u / 200"}},
        "input.derive.z, for part.parquet: u is encrypted, but",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_a_job_that_uses_an_encrypted_column_is_refused_before_the_charge(bench, refused, use) -> None:
    column, job, says = USES[use]
    encrypted(bench.rows, [column])
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=5, delta=1e-6))
    for options in ([], ["--dry-run"]):
        assert says in refused(bench.run({**job, "privacy.ledger": ledger}, *options))
    assert read_ledger(ledger).charges == ()


def test_columns_beside_encrypted_ones_can_be_used(bench) -> None:
    """Whoever encrypts some columns means others to be read."""
    encrypted(bench.rows, ["u", "a.b", "parts.list.element"])
    assert bench.run(COUNTS).exit_code == 0
    described = bench.shoal("init", "median", str(bench.rows))
    assert described.exit_code == 0 and "a.b (encrypted), parts (encrypted)" in described.stdout


def test_a_file_that_is_encrypted_with_the_key_of_its_footer_alone(bench, refused) -> None:
    """Metadata of its columns are in plain text, too."""
    properties = encryption.create_encryption_properties(footer_key=bytes(16), plaintext_footer=True)
    with pq.ParquetWriter(bench.rows, COLUMNS.schema, encryption_properties=properties) as writer:
        writer.write_table(COLUMNS)
    assert "x is encrypted in part.parquet" in refused(bench.run(COUNTS))


def test_rows_with_an_encrypted_column_are_not_screened(bench, refused) -> None:
    """Every column is copied, so one that decides nothing is in the way, too."""
    grid = {"columns": ["x"], "lower": [0], "upper": [1], "step": 0.0078125, "ball": None}
    ball = {"center": [0.5], "radius": 0.25, "count": 3}
    release, out = bench.folder / "release.json", bench.folder / "screened"
    told = {"schema": 1, "task": "one_cluster", "run_id": "a", "outcome": "released", "domain": grid}
    release.write_text(json.dumps({**told, "result": ball}))
    encrypted(bench.rows, ["u"])
    said = refused(bench.shoal("screen", str(release), str(bench.rows), str(out)))
    assert "input.path: u is encrypted in part.parquet" in said and not out.exists()
