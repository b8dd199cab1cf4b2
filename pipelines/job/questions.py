"""A job of several questions: one input, one budget, one release. Each question is a job of its own in it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, Field, create_model

from core.nearest import meant, nearest
from pipelines.errors import JobError, quoted
from pipelines.job.counting import COUNTING, completed_questions, may_lack
from pipelines.job.inputs import RowsInput
from pipelines.job.policy import JobPart
from pipelines.job.privacy import Privacy
from pipelines.nearest import meant_task
from pipelines.tasks import TASKS

QUESTIONS = "questions"
"""The key of a job file that lists questions, and what the release of such a job has for a task."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TAKEN = "result"
"""The name of the table of a job of one question."""

_OF_INPUT = ("columns", "keep", "order", "checks")
"""What a question says of the input. All else of the input is the same for all questions."""

_NEEDED = ("task", "columns", "domain", "params")
_KEYS = (*_NEEDED, "share", "keep", "order", "checks")
_OF_SOME = ("group_by", "contributions")
"""Keys of questions whose task may be asked about groups."""

_OF_ITS_DOMAIN = re.compile(r"privacy\.policy( and group_by|\.\w+ has .* for \d+ ax)")
"""Sentences on what does not suit the domain or the groups of one question."""

_MOST = 100
"""Questions of a job."""


@dataclass(frozen=True)
class QuestionsJob:
    """Several questions about one input, which share one budget.

    Args:
        jobs: each question as a job of its own, by name, with the input, the privacy, the output and the run
            id of the whole.
        shares: of the budget, by name; only their ratios matter.
    """

    jobs: Mapping[str, Any]
    shares: Mapping[str, float]

    @property
    def task(self) -> str:
        """What stands for a task where runs are listed."""
        return QUESTIONS

    @property
    def input(self) -> Any:
        """The input, with the columns of some question."""
        return self._any.input

    @property
    def privacy(self) -> Privacy:
        """The budget of the whole, the neighbor relation and the ledger."""
        return cast(Privacy, self._any.privacy)

    @property
    def unit(self) -> str | None:
        """Column of the privacy unit; None where each row is a unit of its own."""
        return cast("str | None", self._any.unit)

    @property
    def count(self) -> str | None:
        """Column of how many records a row stands for; None where each row is one."""
        return cast("str | None", self._any.count)

    @property
    def output(self) -> str:
        """The folder of the release."""
        return cast(str, self._any.output)

    @property
    def run_id(self) -> str | None:
        """Id of the run."""
        return cast("str | None", self._any.run_id)

    @property
    def _any(self) -> Any:
        return next(iter(self.jobs.values()))

    def hash(self) -> str:
        """Return the SHA-256 of the canonical JSON of the job, 64 hex digits."""
        asked = {
            name: {**job.model_dump(mode="json"), "share": self.shares[name]}
            for name, job in self.jobs.items()
        }
        canonical = json.dumps({QUESTIONS: asked}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def named(self) -> "QuestionsJob":
        """Return the job with a run id in its input path and its output folder; see `Job.named`."""
        run_id = self.run_id or self.hash()[:16]
        given = {name: job.model_copy(update={"run_id": run_id}) for name, job in self.jobs.items()}
        return QuestionsJob({name: job.named() for name, job in given.items()}, self.shares)


def table_name(question: str) -> str:
    """Return the name of the file of a question's table in the output folder."""
    return f"{question}.parquet"


def in_question(name: str, sentence: str) -> str:
    """Return a sentence about a question's own job, with its fields as they are in the job of all."""
    if _OF_ITS_DOMAIN.match(sentence):
        return f"{QUESTIONS}.{name}: {sentence}"
    of_input = "|".join(_OF_INPUT)
    there = re.sub(rf"(?<![\w.])input\.({of_input})\b", rf"{QUESTIONS}.{name}.\1", sentence)
    own = "domain|params|" + "|".join(_OF_SOME)
    there = re.sub(rf"(?<![\w.])({own})(?=\.\w)", rf"{QUESTIONS}.{name}.\1", there)
    there = re.sub(rf"(?<![\w.])({'|'.join(_OF_SOME)})(?= is given\b)", rf"{QUESTIONS}.{name}.\1", there)
    return re.sub(rf"^({own}|task)(?= (is|has)\b)", rf"{QUESTIONS}.{name}.\1", there)


def check_questions(
    raw: Mapping[str, Any], check_one: Callable[[dict[str, Any]], Any], models: Mapping[str, type[BaseModel]]
) -> QuestionsJob:
    """Check a job of several questions.

    Args:
        raw: the job file as a mapping.
        check_one: checks a job of one question, and returns it.
        models: of the jobs of one question, by task.

    Raises:
        JobError: one sentence for each problem.
    """
    keys = ("input", "privacy", QUESTIONS, "output", "run_id")
    unknown = [key for key in raw if key not in keys]
    if unknown:
        close = meant(nearest(unknown[0], keys))
        where = "; each question has its own" if unknown[0] in ("task", "domain", "params") else ""
        said = f"{unknown[0]} is not a key of a job with {QUESTIONS}{close}{where}"
        raise JobError(f"{said}: its keys are {', '.join(keys)}.")
    asked, shared = raw[QUESTIONS], raw.get("input")
    if not isinstance(asked, dict) or not 0 < len(asked) <= _MOST:
        raise JobError(
            f"{QUESTIONS} is {quoted(asked)}: it must be a mapping of 1 to {_MOST} questions by name."
        )
    if not isinstance(shared, dict):
        raise JobError(f"input is {quoted(shared)}: it must be a mapping (key: value).")
    own = next((key for key in _OF_INPUT if key in shared), None)
    if own is not None:
        raise JobError(
            f"input.{own} is given beside {QUESTIONS}: give it in each question, as {QUESTIONS}.NAME.{own}."
        )
    _check_names(asked)
    raw, asked = completed_questions(raw, asked)
    problems: dict[str, None] = {}
    jobs = {}
    for name, question in asked.items():
        try:
            _check_keys(name, question, models)
            jobs[name] = _with_checks(check_one(_as_job(raw, question)))
        except JobError as error:
            problems |= dict.fromkeys(in_question(name, str(sentence)) for sentence in error.args)
    if problems:
        raise JobError(*problems)
    _check_orders(jobs)
    shares = {name: _share(name, question) for name, question in asked.items()}
    return QuestionsJob(jobs, shares).named()


def _check_names(names: Iterable[object]) -> None:
    """Check that names of questions can be names of files, each of a file of its own."""
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise JobError(
                f"{QUESTIONS} has the name {quoted(name)}: it must be 1 to 64 letters, digits, dots, dashes "
                "and underscores, of which the first is a letter or digit."
            )
        if name.lower() == _TAKEN:
            raise JobError(f"{QUESTIONS}.{name} has the name of a table of a release; give it another one.")
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise JobError(
                f"{QUESTIONS} has {other} and {name}: their files would be one where case does not count; "
                "give one of them another name."
            )


def _check_keys(name: str, question: Any, models: Mapping[str, type[BaseModel]]) -> None:
    where = f"{QUESTIONS}.{name}"
    if not isinstance(question, dict):
        raise JobError(f"{where} is {quoted(question)}: it must be a mapping (key: value).")
    task = question.get("task")
    if not isinstance(task, str) or task not in TASKS:
        is_what = "missing" if task is None else quoted(task)
        close = meant_task(task, question_tasks()) if isinstance(task, str) else ""
        raise JobError(f"{where}.task is {is_what}{close}: the tasks are {', '.join(question_tasks())}.")
    if task not in question_tasks():
        raise JobError(f"{where}.task is {task}, which needs a job of its own: leave it out of {QUESTIONS}.")
    keys = (*_KEYS, *_of_task(models[task]))
    unknown = [key for key in question if key not in keys]
    if unknown:
        key = nearest(unknown[0], keys)
        asked = meant(None if key is None else f"{where}.{key}")
        raise JobError(
            f"{where}.{unknown[0]} is not a known key{asked}: the keys of {where} are {', '.join(keys)}."
        )
    fields = models[task].model_fields
    needed = [key for key in _NEEDED if key not in ("params", "domain") or fields[key].is_required()]
    missing = [key for key in needed if key not in question]
    if missing:
        raise JobError(f"{where}.{missing[0]} is missing: {where} needs {', '.join(needed)}.")


def _of_task(model: type[BaseModel]) -> list[str]:
    """Return the keys that a question has because of its task; see `_OF_SOME`."""
    return [key for key in _OF_SOME if key in model.model_fields]


def _as_job(raw: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as a job file of its own."""
    privacy = raw.get("privacy")
    policy = privacy.get("policy") if isinstance(privacy, dict) else None
    own_points = [key for key in ("graph", "constraints") if isinstance(policy, dict) and policy.get(key)]
    if own_points:
        raise JobError(
            f"privacy.policy.{own_points[0]} is given beside {QUESTIONS}: it is about points of one domain, "
            "but each question has its own, so give the question a job of its own."
        )
    own = {key: question[key] for key in _OF_INPUT if key in question}
    others = {key: question[key] for key in ("task", "domain", "params", *_OF_SOME) if key in question}
    shared = {key: raw[key] for key in ("privacy", "output", "run_id") if key in raw}
    return {**shared, **others, "input": {**raw["input"], **own}}


def as_questions(asked: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the job of some questions as a file has it; the inverse of `_as_job`.

    Args:
        asked: each question as a job file of its own, with its `share`; what is beside questions is that of
            the first one.
    """
    first = next(iter(asked.values()))
    shared = {key: first[key] for key in ("privacy", "output", "run_id") if key in first}
    rows = {key: value for key, value in first["input"].items() if key not in _OF_INPUT}
    questions = {
        name: {key: job[key] for key in ("task", "domain", "params", "share", *_OF_SOME) if key in job}
        | {key: job["input"][key] for key in _OF_INPUT if key in job["input"]}
        for name, job in asked.items()
    }
    return {**shared, "input": rows, QUESTIONS: questions}


def _with_checks(job: Any) -> Any:
    """Return a job with its share for checks, which becomes a part of its hash; see `RowsJob.named`."""
    return job.model_copy(update={"input": job.input.model_copy(update={"checks": job.checks})})


def _share(name: str, question: Mapping[str, Any]) -> float:
    share = question.get("share", 1.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 1e-6 <= share <= 1e6:
        raise JobError(
            f"{QUESTIONS}.{name}.share is {quoted(share)}: it must be a number from 0.000001 to 1000000."
        )
    return float(share)


def _check_orders(jobs: Mapping[str, Any]) -> None:
    """Check that one column orders the rows of units: rows are read once for all questions."""
    orders = {job.order: name for name, job in jobs.items() if job.order is not None}
    if len(orders) > 1:
        (one, first), (other, second), *_ = orders.items()
        raise JobError(
            f"{QUESTIONS}.{second}.order is {other}, but {QUESTIONS}.{first}.order is {one}: the questions "
            "of a job must have one order."
        )


def question_tasks() -> list[str]:
    """Return the tasks that can be questions of a job of several."""
    return [name for name, task in TASKS.items() if not task.subsamples]


def questions_schema(models: Mapping[str, type[BaseModel]]) -> type[BaseModel]:
    """Return the model of a job of several questions, for its JSON schema.

    Args:
        models: of the jobs of one question, by task.
    """
    kinds: Any = None
    for task in question_tasks():
        own = models[task].model_fields
        fields: dict[str, Any] = {
            name: (own[name].annotation, own[name])
            for name in ("task", "domain", "params", *_of_task(models[task]))
        }
        fields |= {
            name: (RowsInput.model_fields[name].annotation, RowsInput.model_fields[name])
            for name in _OF_INPUT
        }
        base = _Counting if task == COUNTING else _Question
        kind = create_model(f"Question of {task}", __base__=base, **fields)
        kinds = kind if kinds is None else kinds | kind
    shared: dict[str, Any] = {
        name: (field.annotation, field)
        for name, field in RowsInput.model_fields.items()
        if name not in _OF_INPUT
    }
    job = models["histogram"].model_fields
    whole: dict[str, Any] = {
        name: (job[name].annotation, job[name]) for name in ("privacy", "output", "run_id")
    }
    return create_model(
        "Job of several questions",
        __base__=JobPart,
        input=(create_model("Input of several questions", __base__=JobPart, **shared), ...),
        questions=(
            dict[str, kinds],
            Field(description="The questions by name. A table is a file of the name of its question."),
        ),
        **whole,
    )


class _Question(JobPart):
    share: float = Field(
        default=1.0, description="Part of the budget, relative to the shares of the other questions."
    )


class _Counting(_Question):
    model_config = may_lack("columns", "domain")
