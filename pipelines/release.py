"""The release: everything that a run publishes, as one JSON value that is written once."""

import json
import platform
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from typing import Any, cast

import pyarrow as pa

from core.domain import Grid
from core.errors import ShoalError, kind_of
from core.input_checks import Checked
from core.plan import Finding, InParts, Plan, Tabular
from pipelines.answers.answer import Rows
from pipelines.dates import as_text
from pipelines.errors import JobError, RunError
from pipelines.job.job import Job
from pipelines.job.prepared import described
from pipelines.notes import describe_checks, hidden, notes
from pipelines.plan import describe_choice, describe_groups, describe_noise
from pipelines.storage.folder import Folder
from pipelines.table import (
    ATTEMPT,
    TABLE,
    encode_release,
    encode_table,
    join_stored,
    largest_rows,
    release_inside,
    stored_columns,
    table_of,
)

RELEASE = "release.json"
REPORT = "report.html"
OUTPUT_ID = "output.id"
FILES = (OUTPUT_ID, RELEASE, TABLE, ATTEMPT, REPORT)
"""Names of the files that a run writes, without parts of a table."""
SCHEMA = 1

_PACKAGES = {"shoal": "shoal", "beam": "apache-beam", "dp-accounting": "dp-accounting"}


def draft_release(job: Job, plan: Plan) -> dict[str, Any]:
    """Return the release without outcome and result: the part that is known before data is read."""
    values = job.model_dump(mode="json")
    return {
        "schema": SCHEMA,
        "task": job.task,
        "run_id": job.run_id,
        "job": job.hash(),
        "method": plan.method,
        **describe_choice(job, plan),
        "privacy": {
            "epsilon": job.privacy.epsilon,
            "delta": job.privacy.delta,
            "neighbors": job.privacy.neighbors,
            "unit": job.unit,
            **({} if job.count is None else {"count": job.count}),
            "keep": job.keep,
            "order": job.order,
            "policy": values["privacy"]["policy"],
            "hides": hidden(job, plan),
            "spent": plan.spend.epsilon,
            "spent_delta": plan.spend.delta,
            "accountant": plan.spend.accountant,
        },
        **described(job.input),
        "domain": {"columns": list(job.input.columns), **values["domain"]},
        **describe_groups(job),
        "params": values["params"],
        **describe_noise(job, plan),
        **({"checks": describe_checks(job, plan)} if job.checks else {}),
        "notes": notes(job, plan),
        "software": software(),
    }


def software() -> dict[str, str]:
    """Return the versions of what computes a release."""
    packages = (_PACKAGES | {"numpy": "numpy"}).items()
    return {**{name: _version(package) for name, package in packages}, "python": platform.python_version()}


@cache
def _version(package: str) -> str:
    """Return the version of an installed package. Its metadata are read once in a process."""
    return version(package)


def write_release(folder: Folder, draft: Mapping[str, Any], finding: Finding | Checked, grid: Grid) -> None:
    """Write the release unless there is one.

    Where the answer of the task is a table, `result.parquet` is written once. Its metadata contain the whole
    of release.json, which is then copied from it. So both files always come from the same draw of noise, and
    a writer that is killed between them leaves a state that the next writer can complete.

    Nobody can see a second draw, even if writers are killed and repeated:

    - A draw leaves the memory of its run in one step: `Folder.create` of the file that contains all of it.
    - `create` makes the whole file visible at once, or nothing. Until then the file has no name; on file
      systems without unnamed files it is in a folder that only its owner can enter, and that the next run
      removes.
    - `create` never overwrites a file. So the first draw that becomes visible stays, and later draws are
      discarded with their writers.
    - All other published files, release.json of a table and the report, are made from that file.
    """
    draft, finding = with_checks(draft, finding)
    table = made_table(finding, grid)
    counted = {} if table is None else {"table_rows": length_of_table(table)}
    store_release(folder, complete_release({**draft, **counted}, finding, grid), table)


def made_table(finding: Finding, grid: Grid) -> Mapping[str, Any] | None:
    """Return the columns of a table, empty where nothing was found; None where the answer is no table."""
    if not isinstance(finding, Tabular):
        return None
    return table_of(finding, finding.table(grid) or {}, grid)


def length_of_table(table: Mapping[str, Any]) -> int:
    """Return how many rows a table has: none where it has no columns."""
    return len(next(iter(table.values()), ()))


def store_release(folder: Folder, release: bytes, table: Mapping[str, Any] | None) -> None:
    """Write release.json, and the columns of a table where the answer is one; see `write_release`."""
    if table is None:
        folder.create(RELEASE, release)
        return
    folder.create(TABLE, encode_table(release, table))
    _copy_out(folder)


def encode_part(draft: Mapping[str, Any], grid: Grid, finding: InParts | Checked) -> bytes:
    """Return the file of a part of a table; see `pipelines.table`."""
    draft, part = with_checks(draft, finding)
    part = cast(InParts, part)
    columns = table_of(part, part.columns(grid), grid)
    return encode_table(complete_release(draft, part, grid), columns)


def with_checks(draft: Mapping[str, Any], finding: Finding | Checked) -> tuple[Mapping[str, Any], Finding]:
    """Return the draft of a release with the counts of its checks, and the finding of its task."""
    if not isinstance(finding, Checked):
        return draft, finding
    checks = {**draft["checks"], "left_out": finding.left_out, "moved": finding.moved}
    return {**draft, "checks": checks}, cast(Finding, finding.state)


def _copy_out(folder: Folder) -> bytes | None:
    """Copy release.json out of an existing table; return its bytes, or None without a table."""
    stored = folder.read(TABLE)
    if stored is None:
        return None
    folder.create(RELEASE, release_inside(stored, folder.locate(TABLE)))
    return folder.read(RELEASE)


def _complete(folder: Folder, job: str) -> bytes | None:
    """Write release.json of a table in parts, if all of them are there; return its bytes, or None."""
    release = join_stored(folder, job)
    if release is None:
        return None
    folder.create(RELEASE, release)
    return folder.read(RELEASE)


def identify_output(folder: Folder) -> str:
    """Return the id of an output folder; create the id if the folder has none.

    The path does not identify the folder, because another machine may have another disk there. A charge
    contains this id. So a charged run publishes in one folder only, and draws no noise for another one.

    Raises:
        JobError: the file of the id has other contents.
    """
    made = uuid.uuid4().hex
    folder.create(OUTPUT_ID, f"{made}\n".encode())
    return read_output_id(folder) or made


def read_output_id(folder: Folder) -> str | None:
    """Return the id of an output folder, or None if it has none.

    Raises:
        JobError: the file of the id has other contents.
    """
    stored = folder.read(OUTPUT_ID)
    if stored is None:
        return None
    if not re.fullmatch(rb"[0-9a-f]{32}\n", stored):
        raise JobError(
            f"output: {folder.locate(OUTPUT_ID)} exists, but no run wrote it: give another folder."
        )
    return stored.decode().strip()


def read_rows(folder: Folder, release: Mapping[str, Any]) -> Rows:
    """Return the columns of result.parquet in the folder but for keys of groups, or None without that file.

    Of a table in parts, return the rows of each part that a report may show; see `largest_rows`.

    Args:
        folder: of the release.
        release: a value as in its release.json.

    Raises:
        JobError: the file is missing, or it is not that of this release.
    """
    stored = folder.read(TABLE)
    if stored is None:
        listed = release.get("table")
        if listed is None:
            if _table_rows(folder, release) is not None:
                raise _wrong_table(folder, "missing")
            return None
        with as_the_run_wrote_it(folder.locate(RELEASE)):
            return largest_rows(folder, listed)
    with as_the_run_wrote_it(folder.locate(RELEASE)):
        keys = release["group_by"]["columns"] if "groups" in release else []
    try:
        inside = release_inside(stored, folder.locate(TABLE))
        rows = stored_columns(stored, keys)
    except (pa.ArrowException, OSError, JobError):
        raise _wrong_table(folder, "damaged") from None
    if folder.read(RELEASE) != inside:
        raise JobError(
            f"{folder.locate(TABLE)} and {RELEASE} are not of one run: restore the files that the run wrote."
        )
    if _table_rows(folder, release) not in (None, length_of_table(rows)):
        raise _wrong_table(folder, "damaged")
    return rows or None


def _wrong_table(folder: Folder, what: str) -> JobError:
    return JobError(f"{folder.locate(TABLE)} is {what}: restore the file that the run wrote.")


def _table_rows(folder: Folder, release: Mapping[str, Any]) -> int | None:
    """Return how many rows the table of one answer, or of all groups, has; None where a release does not say.

    Releases of one answer that are older than this key have a table without it.
    """
    with as_the_run_wrote_it(folder.locate(RELEASE)):
        answers = release.get("groups", [release])
        return sum(answer["table_rows"] for answer in answers) if "table_rows" in answers[0] else None


def complete_release(draft: Mapping[str, Any], finding: Finding, grid: Grid) -> bytes:
    """Return the bytes of release.json: the draft with outcome and result.

    Without a result the outcome is `not_found`, which is protected like any other outcome.
    """
    order = ("schema", "task", "run_id", "outcome")
    release = {**draft, **answered(finding, grid)}
    ordered = {key: release[key] for key in order} | release
    return encode_release(ordered)


def answered(finding: Finding, grid: Grid) -> dict[str, Any]:
    """Return the outcome and the result of a release."""
    found = finding.result(grid)
    result = None if found is None else as_text(type(found), asdict(found), grid.times)
    return {"outcome": "not_found" if result is None else "released", "result": result}


def parse_release(data: bytes, where: str) -> dict[str, Any]:
    """Return the release in `data`.

    Raises:
        JobError: the file is not a release.
    """
    try:
        release = json.loads(data)
    except (ValueError, RecursionError):
        release = None
    if not isinstance(release, dict) or release.get("schema") != SCHEMA or "outcome" not in release:
        raise JobError(
            f"{where} is not a release of schema {SCHEMA}: restore the file that the run wrote, or read it "
            "with the version of Shoal that wrote it."
        )
    return release


def stored_release(folder: Folder) -> dict[str, Any]:
    """Return the release in a folder.

    Raises:
        JobError: there is none, or the file is no release.
    """
    data = folder.read(RELEASE)
    if data is None:
        raise JobError(f"{folder.locate(RELEASE)} does not exist: give a release.json or its folder.")
    return parse_release(data, folder.locate(RELEASE))


@contextmanager
def as_the_run_wrote_it(where: str) -> Iterator[None]:
    """Translate every error in showing the values of a stored release to a sentence.

    Raises:
        JobError: a value is missing, or is not one that a run of this version writes.
        RunError: the machine is at fault, not the release.
    """
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:  # any value may have any other type
        if isinstance(error, ImportError | MemoryError) or getattr(error, "errno", None) is not None:
            raise RunError(
                f"{where} is stored, but cannot be shown ({kind_of(error)}): run the same command again; it "
                "costs nothing."
            ) from None
        raise JobError(
            f"{where} cannot be shown ({kind_of(error)}). If it was changed after its run, restore the file "
            "that the run wrote; if not, show it with the version of Shoal that wrote it."
        ) from None


def find_release(folder: Folder, job: str, run_id: str) -> dict[str, Any] | None:
    """Return the release of the job with this hash and run id in `folder`, or None if there is no release.

    Raises:
        JobError: the folder contains the release of another job, or release.json is not a release.
    """
    data = folder.read(RELEASE)
    if data is None:  # an empty file is not None, and is refused below
        data = _copy_out(folder)
    if data is None:
        data = _complete(folder, job)
    if data is None:
        return None
    release = parse_release(data, f"output: {folder.locate(RELEASE)}")
    if release.get("job") != job:
        holds = f"output: {folder.locate('')} already holds a release of"
        if release.get("run_id") == run_id:
            raise JobError(
                f"{holds} this run, {run_id}, and the job has changed since: undo the change (`shoal diff` "
                "shows it, unless it is one of paths or of the ledger), or give another run_id and {run_id} "
                "in output."
            )
        raise JobError(
            f"{holds} another job (run {release.get('run_id')}); give another folder, such as one with "
            "{run_id} in its name."
        )
    return release
