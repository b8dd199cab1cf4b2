"""The release of a job that is asked about each group by itself: one answer for each group.

All groups have one plan, which the release states once. Tables of groups are one table with the key columns.
So whatever is drawn becomes visible by one create-once file, as in a release of one answer; see
`pipelines.release.write_release`. A file for each group would not do: groups compose in parallel, so that the
files of two attempts would have to be of the same records; see `pipelines.table.Attempt`.
"""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from core.domain import Grid
from core.grouping import Grouping, key_columns
from core.groups import GroupedPlan
from core.input_checks import Checked
from core.plan import Finding
from pipelines.answers.answer import Rows
from pipelines.answers.text import key_text
from pipelines.grouped_plan import of_all_groups
from pipelines.job.groups import GroupBy, GroupsJob
from pipelines.release import (
    answered,
    draft_release,
    length_of_table,
    made_table,
    store_release,
    with_checks,
)
from pipelines.storage.folder import Folder
from pipelines.table import encode_release


@dataclass(frozen=True)
class GroupedDraft:
    """What is known of a release before data is read.

    Args:
        whole: the release without its answers and its outcome.
        grouping: the groups, by public keys.
        grid: of the answers.
    """

    whole: Mapping[str, Any]
    grouping: Grouping
    grid: Grid


def draft_grouped_release(job: GroupsJob, plan: GroupedPlan) -> GroupedDraft:
    """Return the release without answers."""
    own = draft_release(job.of_each(plan.budget), plan.each)
    whole = {**of_all_groups(own, job, plan), "job": job.hash()}
    return GroupedDraft(whole, cast(GroupBy, job.group_by).grouping(), job.grid)


def write_grouped_release(
    folder: Folder, draft: GroupedDraft, states: Sequence[tuple[int, Finding | Checked]]
) -> None:
    """Write the release unless there is one.

    Args:
        folder: where to.
        draft: see `GroupedDraft`.
        states: the number of each group and its last state, in any order.
    """
    answer, columns = gathered_groups(draft, states)
    head = {key: draft.whole[key] for key in ("schema", "task", "run_id")}
    store_release(folder, encode_release({**head, **answer}), columns)


def gathered_groups(
    draft: GroupedDraft, states: Sequence[tuple[int, Finding | Checked]]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the answers of all groups as JSON values, and the columns of their table.

    The columns are empty where nothing was found, and None where the answer of a group is no table.
    """
    labels, groups = draft.grouping.labels or (), []
    tables: list[dict[str, Any]] | None = None
    for number, state in sorted(states, key=lambda pair: pair[0]):
        own, kept = with_checks(draft.whole, state)
        finding = copy(kept)  # what it caches of its table goes with it
        group = {"key": json.loads(labels[number]), **answered(finding, draft.grid)}
        if isinstance(state, Checked):
            group["checks"] = own["checks"]
        table = made_table(finding, draft.grid)
        if table is not None:
            group["table_rows"] = length_of_table(table)
            tables = [*(tables or []), dict(table)]
        groups.append(group)
    found = any(group["result"] is not None for group in groups)
    answer = {"outcome": "released" if found else "not_found", **draft.whole, "groups": groups}
    return answer, None if tables is None else _joined(draft.grouping, tables)


def _joined(grouping: Grouping, tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tables of all groups, one after the other, with their keys; empty where all are.

    This takes the columns out of the tables one by one, so that they are not held twice.
    """
    some = {number: table for number, table in enumerate(tables) if table}
    if not some:
        return {}
    rows = [len(next(iter(table.values()))) for table in some.values()]
    keys = key_columns([(grouping.labels or ())[number] for number in some], grouping)
    names = list(next(iter(some.values())))
    joined = {name: values.repeat(rows) for name, values in keys.items()}
    return joined | {name: _one([table.pop(name) for table in some.values()]) for name in names}


def _one(parts: Sequence[Any]) -> Any:
    """Return a column of which there are parts; see `pipelines.table.table_of`."""
    return pa.concat_arrays(parts) if isinstance(parts[0], pa.Array) else np.concatenate(parts)


def answers_by_group(release: Mapping[str, Any], rows: Rows) -> list[tuple[str, dict[str, Any], Rows]]:
    """Return the name of each group, its answer as a release of its own, and its columns of the table.

    Args:
        release: a value as in release.json.
        rows: the columns of its result.parquet, if there is one.

    Raises:
        ValueError: the groups are not those of the job.
    """
    each = release["each_group"]
    privacy = {
        **release["privacy"],
        **{key: each[key] for key in ("epsilon", "delta", "spent", "spent_delta", "accountant")},
    }
    shared = {key: value for key, value in release.items() if key != "groups"}
    keys, first, found = release["group_by"]["columns"], 0, []
    if len(release["groups"]) != release["group_by"]["public_keys"]:
        raise ValueError("a group is missing")
    for group in release["groups"]:
        if not isinstance(group["key"], list) or len(group["key"]) != len(keys):
            raise ValueError("a key has another number of values")
        own, last = rows, first + group.get("table_rows", 0)
        if rows is not None:
            own = {name: values[first:last] for name, values in rows.items() if name not in keys}
        name = key_text(group["key"])
        found.append((name, {**shared, "privacy": privacy, **group}, own if first < last else None))
        first = last
    return found
