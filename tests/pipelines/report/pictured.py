"""Releases of every task, made in memory, whose pictures are drawn."""

import json
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.rounds import run_in_memory
from pipelines.answers.answer import Figure, Rows
from pipelines.job.job import check_job
from pipelines.release import complete_release, draft_release, made_table, with_checks
from pipelines.table import columns_of, encode_table
from pipelines.tasks import TASKS
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import PLANE, VARIANTS, Setting, blocks, changed_job
from tests.pipelines.jobs import changes
from tests.pipelines.test_every_date import CASES, in_dates, in_steps

Release = dict[str, Any]

_COLORS = {
    "input.columns": ["red", "green", "blue"],
    "domain.lower": [0, 0, 0],
    "domain.upper": [255, 255, 255],
    "domain.step": 1.0,
}
_MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "median": (PLANE,),
    "statistics": ({"group_by": {"columns": ["c"], "keys": ["a", "b", "c"]}},),
    "k_means": (_COLORS, {**_COLORS, "params.k": 12, "privacy.epsilon": 9.0}),
    "k_cover": ({**_COLORS, "privacy.epsilon": 9.0},),
    "one_cluster": ({**_COLORS, "privacy.epsilon": 9.0},),
    "histogram": (
        {"input.columns": ["x"], "domain.lower": [0], "domain.upper": [1], "params.cells": [20]},
        {"input.columns": ["x"], "domain.lower": [0], "domain.upper": [1], "params.cells": [500]},
        {**_COLORS, "params.cells": [4, 4, 4]},
    ),
}
"""Jobs that have other pictures than those of `VARIANTS`."""


def jobs() -> dict[str, dict[str, Any]]:
    """Return a job of every task, its variants, and jobs on dates, by name."""
    found = {}
    for task in TASKS:
        variants = enumerate(({}, *VARIANTS.get(task, ())))
        more = ((f"also-{number}", changed) for number, changed in enumerate(_MORE.get(task, ())))
        for number, variant in (*variants, *more):
            job = changed_job({**changes(task), **variant})
            if "policy" in job["privacy"] or job["params"].get("change") == "weight":
                job["privacy"]["neighbors"] = "replace_one"
            if task == "histogram" and "parts" in job["params"]:
                job["params"]["method"] = "sparse"
            found[f"{task}-{number}"] = job
    return found | {f"{task}-{kind}": in_dates(in_steps(task), kind) for task, kind in CASES}


@cache
def release_of(name: str) -> tuple[Release, Rows]:
    """Return the release of a job and the columns of its table, with noise from a fixed seed."""
    setting = Setting(name, check_job(jobs()[name]))
    data = blocks(setting, "two_clumps", 2000)
    state = run_in_memory(setting.plan.rounds, data, setting.plan.start, SeededNoise(7))
    draft, found = with_checks(draft_release(setting.job, setting.plan), state)
    columns = made_table(found, setting.job.grid) or {}
    table = pq.read_table(pa.BufferReader(encode_table(b"", columns)))
    rows = columns_of(table)
    return json.loads(complete_release(draft, found, setting.job.grid)), rows or None


def figures_of(release: Release, rows: Rows) -> tuple[Figure, ...]:
    """Return the figures of an answer."""
    return TASKS[release["task"]].answers.answer(release, rows).figures
