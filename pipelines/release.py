"""The release: everything a run publishes, as one JSON value that is written once."""

import json
import platform
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.domain import Grid
from core.plan import Finding, Plan, Tabular
from pipelines.answers.answer import Rows
from pipelines.console.printable import finite
from pipelines.errors import JobError
from pipelines.job.job import Job
from pipelines.plan import hidden, notes
from pipelines.storage.folder import Folder

RELEASE = "release.json"
TABLE = "result.parquet"
REPORT = "report.html"
OUTPUT_ID = "output.id"
_INSIDE = b"release"
SCHEMA = 1

_PACKAGES = {"shoal": "shoal", "beam": "apache-beam", "opendp": "opendp", "dp-accounting": "dp-accounting"}


def draft_release(job: Job, plan: Plan) -> dict[str, Any]:
    """Return the release as it is known before data is read: without outcome and result."""
    values = job.model_dump(mode="json")
    software = {name: version(package) for name, package in (_PACKAGES | {"numpy": "numpy"}).items()}
    return {
        "schema": SCHEMA,
        "task": job.task,
        "run_id": job.run_id,
        "job": job.hash(),
        "method": plan.method,
        "privacy": {
            "epsilon": job.privacy.epsilon,
            "delta": job.privacy.delta,
            "neighbors": job.privacy.neighbors,
            "unit": job.unit,
            "keep": job.keep,
            "policy": values["privacy"]["policy"],
            "hides": hidden(job, plan),
            "spent": plan.spend.epsilon,
            "accountant": plan.spend.accountant,
        },
        "domain": {"columns": list(job.input.columns), **values["domain"]},
        "params": values["params"],
        "mechanisms": [asdict(mechanism) for mechanism in plan.mechanisms],
        "accuracy": {
            "failure": plan.failure,
            "promises": dict(plan.promises),
            "smallest_target": plan.smallest_target,
        },
        "notes": notes(job, plan),
        "software": {**software, "python": platform.python_version()},
    }


def write_release(folder: Folder, draft: Mapping[str, Any], finding: Finding, grid: Grid) -> None:
    """Write the release where there is none.

    Where the task's answer is a table, empty or not, `result.parquet` is what is written once: its metadata
    holds the whole of release.json, which is copied out of it. So the two are always of one draw of noise,
    whoever writes, and a writer that ends between them leaves nothing that can't be completed.

    Nobody can see a second draw, whenever writers are killed and however often they are repeated:

    - A draw leaves the memory of its run by one step alone: `Folder.create` of the file that holds all of it.
    - `create` shows that file whole or not at all. What it had written before has no name, or on file systems
      without unnamed files a name in a folder that only its owner may enter, which the next run removes.
    - `create` never writes over a file. So the first draw that is shown stays, and every later one vanishes
      with its writer.
    - Everything else that is published, release.json of a table and the report, is made from that file.
    """
    release = complete_release(draft, finding, grid)
    if not isinstance(finding, Tabular):
        folder.create(RELEASE, release)
        return
    table = pa.table(finding.table(grid) or {})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({_INSIDE: release}), sink, compression="zstd")
    folder.create(TABLE, sink.getvalue().to_pybytes())
    _copy_out(folder)


def _copy_out(folder: Folder) -> bytes | None:
    """Make release.json from a table that is there; return its bytes, or None where there is none."""
    stored = folder.read(TABLE)
    if stored is None:
        return None
    try:
        release = pq.read_schema(pa.BufferReader(stored)).metadata[_INSIDE]
    except (pa.ArrowException, TypeError, KeyError):
        raise JobError(f"output: {folder.locate(TABLE)} is there already, and not of a release.") from None
    folder.create(RELEASE, release)
    return folder.read(RELEASE)


def identify_output(folder: Folder) -> str:
    """Return the id of an output folder, which is made where it has none.

    The path alone doesn't say which folder is meant: another machine may have another disk there. A charge
    holds this id, so that the run it pays for publishes in one folder, and draws no noise for another one.

    Raises:
        JobError: something else has the name of that file.
    """
    folder.create(OUTPUT_ID, f"{uuid.uuid4().hex}\n".encode())
    known = read_output_id(folder)
    if known is None:
        raise JobError(f"output: {folder.locate(OUTPUT_ID)} is there already, and not of a run.")
    return known


def read_output_id(folder: Folder) -> str | None:
    """Return the id that `identify_output` gave a folder, or None where there is none."""
    stored = folder.read(OUTPUT_ID) or b""
    return stored.decode().strip() if re.fullmatch(rb"[0-9a-f]{32}\n", stored) else None


def read_rows(folder: Folder) -> Rows:
    """Return the columns of the folder's result.parquet, or None where there is none."""
    stored = folder.read(TABLE)
    if stored is None:
        return None
    try:
        table = pq.read_table(pa.BufferReader(stored))
    except (pa.ArrowException, OSError):
        raise JobError(f"{folder.locate(TABLE)} is damaged: put back the one that the run wrote.") from None
    return {name: table.column(name).to_numpy() for name in table.column_names} or None


def complete_release(draft: Mapping[str, Any], finding: Finding, grid: Grid) -> bytes:
    """Return the bytes of release.json: the draft with what was found.

    No answer found is an answer, `not_found`.
    """
    found = finding.result(grid)
    result = asdict(found) if is_dataclass(found) and not isinstance(found, type) else found
    order = ("schema", "task", "run_id", "outcome")
    release = {**draft, "outcome": "not_found" if result is None else "released", "result": result}
    ordered = {key: release[key] for key in order} | release
    return (json.dumps(finite(ordered), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parse_release(data: bytes, where: str) -> dict[str, Any]:
    """Return the release in `data`.

    Raises:
        JobError: it is none.
    """
    try:
        release = json.loads(data)
    except (ValueError, RecursionError):
        release = None
    if not isinstance(release, dict) or release.get("schema") != SCHEMA or "outcome" not in release:
        raise JobError(f"{where} is not a release of schema {SCHEMA}.")
    return release


def find_release(folder: Folder, job: str) -> dict[str, Any] | None:
    """Return the release that `folder` already holds of the job with this hash, or None where it holds none.

    Raises:
        JobError: it holds the release of another job, or something else by that name.
    """
    data = folder.read(RELEASE) or _copy_out(folder)
    if data is None:
        return None
    release = parse_release(data, f"output: {folder.locate(RELEASE)}")
    if release.get("job") != job:
        raise JobError(
            f"output: {folder.locate('')} already holds a release of another job (run "
            f"{release.get('run_id')}); give another run_id or another folder."
        )
    return release
