"""Run or plan a job from Python. A run is embedded: its workers are threads of this process."""

import os
import tempfile
import uuid
from collections.abc import Mapping
from typing import Any

from pipelines.console.printable import printable
from pipelines.console.quiet import quiet
from pipelines.errors import JobError
from pipelines.job.function_file import carry_function
from pipelines.job.job import check_raw
from pipelines.job.text import parse_job, read_job_text
from pipelines.key_files import check_public
from pipelines.looks import look_at_plan
from pipelines.storage.locate import open_folder
from shoal.data import Data, place_data
from shoal.job_values import written
from shoal.shown import Plan, Release

Job = Mapping[str, Any] | str | os.PathLike[str]
"""A job: a mapping, the text of a job file, or the path of one.

Text with a line break, or with a colon before a space, is that of a job file. Other text is a path.
"""


def run(job: Job, data: Data | None = None) -> Release:
    """Run a job and return its release, as `shoal run` does.

    `input.path` is left out where `data` is given. Without `output` the release is kept in memory alone.
    In both cases `run_id` may be left out, and each call is then a run of its own: it draws its own noise,
    spends its own budget, and is charged by itself where the job names a ledger.

    Args:
        job: a mapping, the text of a job file, or the path of one.
        data: the rows: a table of pandas, polars or pyarrow, a path as in `input.path`, or a list of local
            files. A table is written to a private temporary file, which is removed at the end.

    Raises:
        ShoalError: the job or the data is wrong, the ledger refuses the run, or the run failed. The text is
            one sentence for each problem, and contains nothing of any row.
    """
    raw = read_job(job)
    with quiet(), tempfile.TemporaryDirectory(prefix="shoal-") as folder:  # only its owner may enter it
        if data is not None or "output" not in raw:
            raw.setdefault("run_id", uuid.uuid4().hex)
        if data is not None:
            _give_path(raw, place_data(data, os.path.join(folder, "data"), raw))
        raw.setdefault("output", os.path.join(folder, "release"))
        checked = check_raw(raw)
        if isinstance(data, list | tuple):
            check_public(checked, [os.path.expanduser(file) for file in data])
        from pipelines.run.run import run_job  # imports Beam, which a plan does not need

        release = run_job(checked)
        if release is None:  # only runners of clusters accept a job and run it later
            raise JobError("The run was submitted, but has no release yet.")
        return Release.stored(open_folder(checked.output), release)


def plan(job: Job) -> Plan:
    """Return the plan of a job, as `shoal plan` shows it. No row is read, and nothing is spent.

    Args:
        job: see `run`. `input.path`, `run_id` and `output` may be left out.

    Raises:
        ShoalError: the job is wrong; one sentence for each problem.
    """
    raw, stored = read_to_plan(job)
    described, show, refusals = look_at_plan(check_raw(raw))
    return Plan.of(described, show, refusals, stored)


def read_to_plan(job: Job) -> tuple[dict[str, Any], bool]:
    """Return a job as a mapping that can be planned without rows, and whether it says where its release goes.

    Raises:
        JobError: see `read_job`.
    """
    raw = read_job(job)
    stored = "output" in raw
    raw.setdefault("output", "release")
    if isinstance(raw.get("input"), dict):
        raw["input"].setdefault("path", os.devnull)  # where no table lies that must not be of the input
    return raw, stored


def read_job(job: Job) -> dict[str, Any]:
    """Return a job as a mapping of its own. Its fields are not checked.

    Raises:
        JobError: it is neither a mapping nor the text or the path of a job file; see also `written`.
    """
    if isinstance(job, Mapping) or (isinstance(job, str) and ("\n" in job or ": " in job)):
        raw = parse_job(job, "job") if isinstance(job, str) else written(job)
        carry_function(raw, os.curdir)
        return raw
    given: Any = job  # a caller may give anything
    if isinstance(given, str | os.PathLike) and os.fspath(given):
        return read_job_text(os.fspath(given))
    raise JobError(
        f"job is {printable(ascii(job)[:60])}: give a mapping, the text of a job file, or the path of one."
    )


def _give_path(raw: dict[str, Any], path: str) -> None:
    """Put the path of the data into a job.

    Raises:
        JobError: the job has a path of its own.
    """
    rows = raw.get("input", {})
    if not isinstance(rows, dict):
        return  # which the check of the job refuses
    if "path" in rows:
        raise JobError("input.path is given beside data: leave out one of them.")
    raw["input"] = {**rows, "path": path}
