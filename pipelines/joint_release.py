"""The release of several questions: a table of each answer that is one, and release.json with all answers.

Nobody can see a second draw of a question, even if writers are killed and repeated. Each table is written
create-only, with its own answer in its metadata. release.json is written last, create-only, and made from the
*stored* tables. An answer that is no table is shown in release.json alone.

A run that is killed between two files has published the draws of some questions. The next attempt at the run
keeps these files, and draws noise for the other questions alone: what it drew for the stored ones is
discarded. So at most one draw of each question is ever shown, some of one attempt and some of another. That
costs no more than one attempt does: questions compose in sequence, each with a charge of its own, so it makes
no difference whether two questions were answered by one attempt or by two, or even from two versions of the
input. The parts of one table, and the groups of one question, compose in parallel, and that needs the same
records. So all groups are in one file; for parts see `pipelines.table.Attempt`. It does need the same noise:
a table of an attempt that planned other noise is refused.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from core.domain import Grid
from core.grouping import Grouping
from core.groups import GroupedPlan
from core.input_checks import Checked
from core.plan import Finding, Plan
from core.questions import JointPlan
from pipelines.answers.answer import Rows
from pipelines.console.printable import finite
from pipelines.errors import JobError
from pipelines.grouped_release import GroupedDraft, draft_grouped_release, gathered_groups
from pipelines.job.groups import GroupsJob
from pipelines.job.questions import QUESTIONS, QuestionsJob, table_name
from pipelines.joint_plan import describe_joint_privacy, questions_of
from pipelines.release import (
    RELEASE,
    SCHEMA,
    answered,
    draft_release,
    made_table,
    software,
    with_checks,
)
from pipelines.storage.folder import Folder
from pipelines.table import (
    columns_of,
    encode_release,
    encode_table,
    open_table,
    read_listed,
    release_inside,
)

_OF_THE_WHOLE = ("schema", "run_id", "job", "software")
"""Keys of a release that all answers of a job share."""


Ended = Finding | Checked | Sequence[tuple[int, Finding | Checked]]
"""The last state of a question, or the numbers of its groups with the last state of each."""


@dataclass(frozen=True)
class JointDraft:
    """What is known of a release before data is read.

    Args:
        whole: the release without its answers and its outcome.
        answers: of each question by name: its answer without outcome and result.
        grids: of each question.
        groupings: of each question that is asked about each of its groups by itself.
    """

    whole: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, Any]]
    grids: Mapping[str, Grid]
    groupings: Mapping[str, Grouping]


def draft_joint_release(job: QuestionsJob, plan: JointPlan) -> JointDraft:
    """Return the release without answers."""
    whole = {
        "schema": SCHEMA,
        "task": QUESTIONS,
        "run_id": job.run_id,
        "job": job.hash(),
        "privacy": describe_joint_privacy(job, plan),
        "software": software(),
    }
    drafts, groupings = {}, {}
    for name, (question, its) in questions_of(job, plan).items():
        if isinstance(its, GroupedPlan):
            grouped = draft_grouped_release(cast(GroupsJob, question), its)
            drafts[name], groupings[name] = grouped.whole, grouped.grouping
        else:
            drafts[name] = draft_release(question, cast(Plan, its))
    answers = {
        name: {key: value for key, value in draft.items() if key not in _OF_THE_WHOLE}
        for name, draft in drafts.items()
    }
    grids = {name: question.grid for name, question in job.jobs.items()}
    return JointDraft(whole, answers, grids, groupings)


def write_answer(folder: Folder, draft: JointDraft, name: str, ended: Ended) -> dict[str, Any]:
    """Return the answer of a question as JSON values; where it is a table, write that unless it is there.

    Then the answer is that of the stored table, whoever wrote it.

    Raises:
        JobError: the stored table is of another job, or of an attempt with other noise.
    """
    answer, table = _answer_of(draft, name, ended)
    if table is None:
        return finite(answer)
    file = table_name(name)
    inside = {**draft.whole, "question": name, "answer": answer}
    made = encode_table(encode_release(inside), table)
    stored = made if folder.create(file, made) else folder.read(file) or b""
    held = _held_in(folder, draft, name, stored)
    rows = open_table(stored).metadata.num_rows
    listed = [{"name": file, "rows": rows, "sha256": hashlib.sha256(stored).hexdigest()}]
    return {**held, "table": listed}


def _answer_of(draft: JointDraft, name: str, ended: Ended) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Return the answer of a question as JSON values, and its table; None where it is no table."""
    own, grid, grouping = draft.answers[name], draft.grids[name], draft.groupings.get(name)
    task = {"task": own["task"]}
    if grouping is not None:
        states = cast(Sequence[tuple[int, Finding | Checked]], ended)
        answer, table = gathered_groups(GroupedDraft(own, grouping, grid), states)
        return {**task, **answer}, table
    own, finding = with_checks(own, cast(Finding | Checked, ended))
    return {**task, **own, **answered(finding, grid)}, made_table(finding, grid)


def check_stored(folder: Folder, draft: JointDraft) -> None:
    """Check that every table that is stored already is one that a run of this job may keep.

    Raises:
        JobError: see `write_answer`.
    """
    for name in draft.answers:
        stored = folder.read(table_name(name))
        if stored is not None:
            _held_in(folder, draft, name, stored)


def _held_in(folder: Folder, draft: JointDraft, name: str, stored: bytes) -> dict[str, Any]:
    """Return the answer in the metadata of a stored table of a question.

    Raises:
        JobError: see `write_answer`.
    """
    place = folder.locate(table_name(name))
    held, where = json.loads(release_inside(stored, place)), f"output: {place}"
    if held.get("job") != draft.whole["job"] or held.get("question") != name:
        raise JobError(f"{where} is of another job: give another run_id or folder.")
    answer: dict[str, Any] = held["answer"]
    if answer["mechanisms"] != finite(draft.answers[name])["mechanisms"]:
        raise JobError(
            f"{where} is of an earlier attempt at this run, which planned other noise: run it with the "
            "version of Shoal that began it, or give another run_id, which is charged separately."
        )
    return answer


def write_joint_release(
    folder: Folder, draft: JointDraft, answers: Iterable[tuple[str, dict[str, Any]]]
) -> None:
    """Write release.json of all answers, the tables of which are stored, unless there is one."""
    by_name = dict(answers)
    ordered = {name: by_name[name] for name in draft.answers}
    found = any(answer["outcome"] == "released" for answer in ordered.values())
    head = {key: draft.whole[key] for key in ("schema", "task", "run_id")}
    release = {**head, "outcome": "released" if found else "not_found", **draft.whole, "answers": ordered}
    folder.create(RELEASE, encode_release(release))


def answers_of(release: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the answers of a release by name, each as a release of its own.

    Each has `file`, the name of the file of its table.
    """
    shared = {key: release[key] for key in _OF_THE_WHOLE if key in release}
    return {
        name: {**shared, **answer, "table": None, "file": table_name(name)}
        for name, answer in release["answers"].items()
    }


def tables_of(release: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of tables that a release lists: of questions, or of parts."""
    listed = [release, *release.get("answers", {}).values()]
    return [part["name"] for each in listed for part in each.get("table") or ()]


def read_answer_rows(folder: Folder, release: Mapping[str, Any]) -> dict[str, Rows]:
    """Return the columns of the table of each question, by name; None where its answer is no table.

    Raises:
        JobError: a table is not as the run wrote it.
    """
    return {name: _rows(folder, answer.get("table")) for name, answer in release["answers"].items()}


def _rows(folder: Folder, listed: list[Mapping[str, Any]] | None) -> Rows:
    if listed is None:
        return None
    (part,) = listed
    return columns_of(read_listed(folder, part)) or None
