"""The job file: the task, its input and budget, and the folder of the release."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from core.domain import Grid
from core.errors import InvalidValue
from core.nearest import nearest
from core.neighbors import Neighbors
from pipelines.dates import has_text
from pipelines.errors import JobError, check_text, quoted, sentences_of
from pipelines.job.domain import Domain, with_whole_earth
from pipelines.job.geography import check_geography
from pipelines.job.inputs import Input, RowsInput
from pipelines.job.params import params_model
from pipelines.job.policy import JobPart
from pipelines.job.prepared import check_count, check_prepared
from pipelines.job.privacy import Privacy
from pipelines.job.questions import QUESTIONS, QuestionsJob, check_questions
from pipelines.job.run_ids import RUN_ID, check_paths, filled_output, filled_path
from pipelines.job.text import check_filled, read_job_text
from pipelines.job.units import check_units
from pipelines.job.written import TEXTS
from pipelines.nearest import meant_task
from pipelines.storage.locate import absolute, open_folder
from pipelines.tasks import TASKS, Keep

if TYPE_CHECKING:
    from core.grouping import Contributions
    from transforms.group_keys import GroupKeys

_CHECKS, _MOST_CHECKS = 0.01, 0.5  # the default share; a share above the second leaves little for the answer


class Job(JobPart):
    """A job of Shoal."""

    task: str
    input: Input
    privacy: Privacy
    params: Any
    output: Annotated[str, AfterValidator(absolute)] = Field(
        examples=["releases/{run_id}"],
        description="New folder for the release; {run_id} is replaced by the run id. A relative path begins "
        "at the working directory.",
    )
    run_id: str | None = Field(
        default=None,
        pattern=f"^{RUN_ID}$",
        description="Id of the run. The same id is the same run: it is charged once and has one release. By "
        "default it is made from the job file with absolute paths, and the code of a function in a file. It "
        "does not depend on the data, or on the code of a module.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.unit == "":
            raise ValueError("input.unit is empty: give the name of a column, or leave it out.")
        self.check_records()
        if not self.output:
            raise ValueError("output is empty: give the folder of the release.")
        check_paths(self.input.path, self.output, self.run_id)
        open_folder(self.output)
        _ = self.neighbors
        return self

    @property
    def grid(self) -> Grid:
        """The universe of the records."""
        raise NotImplementedError

    @property
    def unit(self) -> str | None:
        """Column of the privacy unit; None where each row is a unit of its own."""
        return None

    @property
    def keep(self) -> Keep | None:
        """How the rows of a unit become one record; None where they do not."""
        return None

    @property
    def order(self) -> str | None:
        """Column that orders the rows of a unit; None where their order does not matter."""
        return None

    @property
    def count(self) -> str | None:
        """Column of how many records a row stands for; None where each row is one."""
        return None

    @property
    def checks(self) -> float:
        """Share of epsilon that pays for counts of what the input has outside of the domain; 0 for none."""
        return 0.0

    @property
    def bounds(self) -> "Contributions | None":
        """What a unit may contribute where its rows remain several records; None where they do not."""
        return None

    @property
    def group_keys(self) -> "GroupKeys | None":
        """How rows become members of groups; None without groups."""
        return None

    @property
    def apart(self) -> bool:
        """Whether the job is asked about each group by itself; see `core.groups`."""
        return False

    def check_records(self) -> None:
        """Check that the input fits the domain.

        Raises:
            ValueError: one sentence that names the field.
        """

    @property
    def neighbors(self) -> Neighbors:
        """The neighbor relation, with its policy."""
        policy = self.privacy.policy
        return Neighbors(self.privacy.neighbors, None if policy is None else policy.build(self.grid))

    @property
    def task_params(self) -> Any:
        """The parameters as the dataclass of the task."""
        return self.params.build()

    def hash(self) -> str:
        """Return the SHA-256 of the canonical JSON of the job, 64 hex digits."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def completed(cls, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return a job as it is written, with what may be left out of its domain."""
        return {**raw, "domain": with_whole_earth(raw["domain"])} if "domain" in raw else dict(raw)

    def named(self) -> Self:
        """Return the job with a run id in its input path and its output folder.

        The default id is made from the hash of the job: the text of the job file with absolute paths, and the
        code of a function in a file. It does not depend on the data, or on the code of a module.
        """
        run_id = self.run_id or self.hash()[:16]
        paths = {
            "input": self.input.model_copy(update={"path": filled_path(self.input.path, run_id)}),
            "output": filled_output(self.output, run_id),
        }
        return self.model_copy(update={"run_id": run_id, **paths})


class RowsJob(Job):
    """A job whose records are rows or units, as points of its domain."""

    input: RowsInput
    domain: Domain

    @property
    def grid(self) -> Grid:
        """See `Job.grid`."""
        return self.domain.grid()

    @property
    def task_params(self) -> Any:
        """See `Job.task_params`. Dates and durations are numbers of steps."""
        return self.params.build(self.grid)

    @property
    def unit(self) -> str | None:
        """See `Job.unit`."""
        return self.input.unit

    @property
    def keep(self) -> Keep | None:
        """See `Job.keep`."""
        return self.input.keep if self.unit is not None else None

    @property
    def order(self) -> str | None:
        """See `Job.order`."""
        return self.input.order

    @property
    def count(self) -> str | None:
        """See `Job.count`."""
        return self.input.count

    @property
    def checks(self) -> float:
        """See `Job.checks`."""
        if self.input.checks is None:
            return _CHECKS if self.privacy.policy is None else 0.0
        return self.input.checks

    def named(self) -> Self:
        """See `Job.named`. The share for checks becomes a part of the job, and so of its hash."""
        checked = self.input.model_copy(update={"checks": self.checks})
        return super(RowsJob, self.model_copy(update={"input": checked})).named()

    def check_records(self) -> None:
        """See `Job.check_records`."""
        columns, axes = len(self.input.columns), len(self.domain.lower)
        if columns != axes:
            raise ValueError(
                f"input.columns has {columns} columns and domain.lower {axes} values: "
                "give one value per column."
            )
        self._check_times()
        if self.domain.geography is not None:
            check_geography(self.task, self.input, self.domain.geography)
        check_units(self.task, self.input.columns, self.domain)
        self._check_unit()
        self._check_order()
        groups = getattr(self, "group_by", None)
        check_count(self.input, () if groups is None else groups.columns, self.privacy)
        public_edges = getattr(self.params, "change", None) == "weight"
        check_prepared(self.input, self.privacy, self.unit, False, public_edges)
        if not 0 <= self.checks <= _MOST_CHECKS:
            raise ValueError(f"input.checks is {self.checks}: it must be from 0 to {_MOST_CHECKS}.")
        if self.checks and self.privacy.policy is not None:
            raise ValueError(
                f"input.checks is {self.checks} and privacy.policy is given: a policy is about points of the "
                "domain, but checks count what lies outside, so leave out one of them."
            )

    def _check_times(self) -> None:
        """Check what a domain of dates or timestamps needs: a task and parameters that suit it."""
        times, task = self.domain.times, TASKS[self.task]
        if times is None:
            return
        kind = f"domain has {times.kind}"
        if not task.times:
            raise ValueError(f"{kind}: columns of {self.task} are numbers.")
        numbers = [axis for axis, low in enumerate(times.lower) if low is None]
        labels = [1] if task.labels else []
        if numbers != labels and (labels or numbers):
            allowed = "the label, from 0 to 1, is a number" if labels else "all must be of one kind"
            raise ValueError(
                f"{kind} and numbers in axes {numbers}: {allowed}." if numbers else f"{kind}: {allowed}."
            )
        if self.unit is not None and self.input.keep in ("sum", "count"):
            raise ValueError(
                f"input.keep is {self.input.keep} and {kind}: a {self.input.keep} is a number and no date, "
                "so use another one."
            )
        try:
            asked = self.task_params
        except InvalidValue as error:
            raise ValueError(error.sentence(f"params.{error.field}")) from None
        if "sum" in getattr(asked, "measures", ()):
            raise ValueError(
                f"params.measures has sum and {kind}: a sum of dates is no date, so leave it out."
            )

    def _check_unit(self) -> None:
        unit, keep, keeps = self.unit, self.input.keep, TASKS[self.task].keeps
        if unit is None and "keep" in self.input.model_fields_set:
            raise ValueError(
                f"input.keep is {keep}, but there is no input.unit, so each row is one person: give that "
                "column, or leave input.keep out."
            )
        if unit is not None and not keeps:
            raise ValueError(
                f"input.unit is {unit}: {self.task} hides one edge of a graph, not all edges of a unit, so "
                "leave it out."
            )
        if unit is not None and self.privacy.policy is not None:
            raise ValueError(
                f"input.unit is {unit} and privacy.policy is given: a policy is about the values of single "
                "rows, but the record of a unit is made of several rows, so leave out one of them."
            )
        if unit is not None and keep not in keeps:
            raise ValueError(
                f"input.keep is {keep}: labels cannot be combined, so for {self.task} it must be "
                f"{' or '.join(keeps)}."
            )
        if unit is not None and keep == "count" and len(self.input.columns) != 1:
            raise ValueError(
                "input.keep is count: a record is then the number of a unit's rows that have a value in the "
                f"column, but input.columns has {len(self.input.columns)} columns: give one."
            )

    def _check_order(self) -> None:
        order, keep = self.order, self.input.keep
        if order == "":
            raise ValueError("input.order is empty: give the name of a column, or leave it out.")
        if keep == "last" and order is None:
            raise ValueError(
                "input.keep is last, but there is no input.order: give the column of a row's time or "
                "sequence number."
            )
        if keep != "last" and order is not None:
            raise ValueError(
                f"input.order is {order}, but input.keep is {keep}: only last uses an order, so set "
                "input.keep to last, or leave input.order out."
            )


@cache
def job_model(name: str) -> type[Job]:
    """Return the model of a task's jobs."""
    task = TASKS[name]
    params = params_model(task.params, task.core.choice, task.core.choices)
    needed = any(field.is_required() for field in params.model_fields.values())
    return create_model(
        f"Job of {name}",
        __base__=task.job or RowsJob,
        task=(cast(Any, Literal[name]), ...),
        params=(params, ... if needed else params()),
    )


def load_job(path: str, overrides: Sequence[str] = ()) -> Any:
    """Read a job file, apply the overrides and check the job. No other file is read, but that of a function.

    Args:
        path: the YAML file.
        overrides: each `dotted.key=value`.

    Returns:
        The job, with its run id and with absolute paths: a `Job`, or a `QuestionsJob`.

    Raises:
        JobError: the job is invalid; one sentence per problem.
    """
    return check_raw(read_job_text(path, overrides))


def check_raw(raw: dict[str, Any]) -> Any:
    """Check a job given as a mapping, of one question or of several; see `load_job`."""
    check_filled(raw)
    return check_several(raw) if QUESTIONS in raw else check_job(raw)


def check_several(raw: dict[str, Any]) -> QuestionsJob:
    """Check a job of several questions given as a mapping; see `load_job`."""
    check_text(raw)
    return check_questions(raw, _check_one, {name: job_model(name) for name in TASKS})


def check_job(raw: dict[str, Any]) -> Job:
    """Check a job of one question given as a mapping; see `load_job`."""
    check_text(raw)
    task, tasks = raw.get("task"), f"the tasks are {', '.join(TASKS)}"
    if task is None:
        typed = None if "task" in raw else nearest("task", map(str, raw))
        wrong = "has no value" if "task" in raw else "is missing"
        raise JobError(f"task {wrong}{f' ({typed} is not a known key)' if typed else ''}: {tasks}.")
    if not isinstance(task, str) or task not in TASKS:
        close = meant_task(task, TASKS) if isinstance(task, str) else ""
        raise JobError(f"task is {quoted(task)}{close}: {tasks}.")
    return _check_one(raw).named()


def _check_one(raw: dict[str, Any]) -> Job:
    """Check a job of a known task. It has no run id yet, unless it gives one."""
    model = job_model(raw["task"])
    raw = model.completed(raw)
    try:
        # As JSON: strict mode then refuses text for a number and true for 1, but takes a list for a tuple.
        context = {TEXTS: has_text(raw.get("domain"))}
        return model.model_validate_json(json.dumps(raw), strict=True, context=context)
    except ValidationError as error:
        raise JobError(*sentences_of(error, model)) from None
    except (TypeError, ValueError):
        raise JobError("The job contains a value that is not text, a number, a list or a mapping.") from None
