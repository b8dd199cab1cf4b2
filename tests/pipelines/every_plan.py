"""Every plan that a job can ask for: each task, method, aggregator, relation and policy."""

import copy
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, cast, get_args, get_type_hints

import numpy as np

import core.task
from core.errors import InvalidValue
from core.groups import GroupedPlan
from core.plan import Plan
from core.questions import JointPlan
from core.rounds import Block
from core.task import Method
from pipelines.errors import JobError
from pipelines.grouped_plan import make_grouped_plan
from pipelines.job.groups import GroupsJob
from pipelines.job.job import Job, check_job, check_several
from pipelines.job.questions import QuestionsJob
from pipelines.joint_plan import make_joint_plan, questions_of
from pipelines.plan import make_plan
from pipelines.tasks import TASKS
from tests.pipelines.jobs import LINE, changes

SALT = b"sixteen secrets!"

SETTINGS_OF = [task for task in os.environ.get("SETTINGS_OF", "").split(",") if task] or list(TASKS)
"""Tasks whose settings are made: all, or where `make mutants` runs the tests those that it names."""

CHOICES = ("method", "aggregator", "noise")
"""Parameters whose values are names of what a plan can choose."""

POLICIES: tuple[dict[str, Any], ...] = (
    {"secrets": "attribute"},
    {"distance": 0.25},
    {"partition": 0.25},
    {"secrets": "full", "constraints": True},
)

FITTED: dict[str, dict[str, Any]] = {
    "mst_cost": {"domain.step": 2.0**-3},  # few nodes: the exact cuts take long
    "sample_and_aggregate": {  # else nothing is found, and no radius is released
        "params.blocks": 800,
        "params.stable_fraction": 0.4,
        "privacy.epsilon": 2.0,
    },
}
"""What changes in a task's small job so that all draws are made, soon."""

FIVE_COLUMNS = {
    "input.columns": ["a", "b", "c", "d", "e"],
    "domain.lower": [0] * 5,
    "domain.upper": [1] * 5,
    "privacy.epsilon": 8.0,  # so that few records suffice for every axis and level
}

PLANE = {"input.columns": ["x", "y"], "domain.lower": [0, 0], "domain.upper": [1, 0.5]}
NEAR = {"privacy.policy": {"distance": 3 * 2.0**-10}}
CHECKED = {"input.checks": 0.125}
CONTRIBUTED = {"input.unit": "u", "contributions": {"groups": 2, "rows": 3}}
THIRDS: dict[str, Any] = {"quantiles": [0.3, 0.6]}
MEDIAN: dict[str, Any] = {"quantiles": [0.5]}
IN_PARTS = {"params": {"cells": [8, 8], "parts": 3}}
WIDE = {"domain.upper": [2.0**40], "domain.step": 1.0}
"""A domain whose points are looked at several times."""

FINE: dict[str, Any] = {"domain.step": 2.0**-22}
"""A domain whose values are counted in sections where a release needs all of them."""

LONG = {**LINE, "domain.upper": [2.0**30], "domain.step": 1.0}
"""One whose values statistics count in sections."""

EARTH = {"input.columns": ["lat", "lon"], "domain": {"geography": "wgs84", "step": 1000}}
"""Points of the sphere in three columns."""

MAP = {
    "input.columns": ["lat", "lon"],
    "domain": {"geography": "wgs84", "lower": [-22, 175], "upper": [-12, -175], "step": 1000},
}
"""Points of a map, across the date line."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "bounds": (PLANE, {"params": {"outside": 0.2}}),
    "cdf": ({"privacy.policy": {"distance": 2.0**-10}},),
    "histogram": (
        {"params": {"cells": [1, 8]}, "privacy.policy": {"distance": [0.25, 0]}},
        CHECKED,
        IN_PARTS,
        {**IN_PARTS, **CHECKED},
    ),
    "interior_point": (WIDE, NEAR, {**NEAR, **FINE}),
    "k_cover": ({"params": {"k": 2, "coverage": 0.9}}, EARTH),
    "k_means": (
        FIVE_COLUMNS,
        {"privacy.delta": 0.0},
        {"privacy.policy": {"distance": [0.125, 0]}},
        EARTH,
        MAP,
    ),
    "k_median": (FIVE_COLUMNS, EARTH),
    "median": (
        {"params": {"scale_share": 0.2}, "domain.step": 2.0**-22},
        {"params": {"interval_share": 0.0}},
        WIDE,
        NEAR,
        PLANE,
        {**PLANE, "domain.step": 2.0**-22, "params": {"scale_share": 0.2}},  # with a look
        {**PLANE, **NEAR},
    ),
    "minimum": ({"params": {"largest": False}}, WIDE, NEAR, PLANE, {**NEAR, **FINE}),
    "mst_cost": ({"params": {"change": "weight", "scale_share": 0.0}},),
    "one_cluster": (
        {"params.target": 300},  # with a lattice
        {"params.target": 900},  # with averages
        {**EARTH, "params.target": 300},
        {**EARTH, "params.target": 900},
        {**MAP, "params.target": 900},
    ),
    "quantiles": (
        {"params": {"probabilities": [0.5]}},
        {"params": {"probabilities": [0.5]}, **WIDE},
        WIDE,
        {"params": {"probabilities": [0.25, 0.5, 0.75]}, **WIDE, "privacy.epsilon": 2.0**-6},
        {"params": {"probabilities": [i / 20 for i in range(1, 20)]}},
        {"domain.step": 2.0**-2},
        NEAR,
        {"privacy.policy": {"distance": 2.0**-10}},
        CHECKED,
        {**NEAR, **FINE},
    ),
    "ranges": (
        CHECKED,
        {"domain.step": 2.0**-3},
        {
            "input.columns": ["x", "y", "z"],
            "domain.lower": [0] * 3,
            "domain.upper": [1, 0.5, 2],
            "params": {"records": 300},
        },
    ),
    "sample_and_aggregate": (
        {"params.ranges": "loose", "params.outputs": {"lower": [-1, 0], "upper": [1, 3], "step": 2.0**-10}},
    ),
    "statistics": (
        CHECKED,
        {**LINE, **NEAR},
        {**LINE, "params.measures": ["sum"], "group_by": {"columns": ["c"], "keys": ["a", "b", "c", "d"]}},
        {"group_by": {"columns": ["c"], "keys": ["a", "b", "c"]}, **CHECKED},
        {"params.parts": 3, "group_by": {"columns": ["c"], "keys": ["a", "b", "c"]}},
        {**LONG, "params.measures": ["minimum", THIRDS]},
        {
            **LONG,
            "params.measures": ["maximum", THIRDS],
            "group_by": {"columns": ["c"], "keys": "private"},
        },
        {"group_by": {"columns": ["c"], "keys": "private"}},
        {**LINE, "params.measures": ["sum"], "group_by": {"columns": ["c"], "keys": "private"}},
        {**LINE, "params.measures": ["count", "sum", "mean"]},
        {
            **LINE,
            **CONTRIBUTED,
            "params.measures": ["units", "count", "mean"],
            "group_by": {"columns": ["c"], "keys": ["a", "b", "c", "d"]},
        },
        {
            **LINE,
            **CONTRIBUTED,
            "params.measures": ["count", "mean"],
            "group_by": {"columns": ["c"], "keys": "private"},
            "privacy.epsilon": 8.0,
        },
        {"params.parts": 3, **CHECKED, "group_by": {"columns": ["c"], "keys": "private"}},
        {"input.unit": "u", "contributions": {"rows": 3}},
        {**CONTRIBUTED, "group_by": {"columns": ["c"], "keys": ["a", "b", "c", "d"]}},
        {**CONTRIBUTED, **CHECKED, "group_by": {"columns": ["c"], "keys": "private"}, "privacy.epsilon": 8.0},
        {
            **CONTRIBUTED,
            "params.measures": ["mean"],
            "group_by": {"columns": ["c"], "keys": "private"},
            "privacy.epsilon": 8.0,
        },
        {
            "params.measures": ["count", "units", "sum"],
            "domain.lower": [-0.5, 0.25],
            "input.unit": "u",
            "contributions": {"groups": 2, "rows": 3, "clamp": "unit"},
            "group_by": {"columns": ["c"], "keys": ["a", "b", "c", "d"]},
        },
        {
            "params.measures": ["sum"],
            "input.unit": "u",
            "contributions": {"groups": 2, "rows": 3, "clamp": "unit"},
            "group_by": {"columns": ["c"], "keys": "private"},
            "privacy.epsilon": 8.0,
        },
        {**LINE, "params.measures": ["count", THIRDS, "minimum"]},
        {"params.measures": [MEDIAN, "maximum"], "group_by": {"columns": ["c"], "keys": ["a", "b", "c"]}},
        {
            **LINE,
            "params": {"measures": [THIRDS, "sum"], "parts": 3},
            "group_by": {"columns": ["c"], "keys": "private"},
        },
        {**LINE, "params.measures": [THIRDS], "input.unit": "u", "contributions": {"rows": 2}},
        {
            **LINE,
            **CONTRIBUTED,
            "params.measures": ["units", THIRDS, "minimum"],
            "group_by": {"columns": ["c"], "keys": "private"},
            "privacy.epsilon": 30.0,
        },
        {
            **LINE,
            **CONTRIBUTED,
            "params.measures": [MEDIAN, "minimum"],
            "group_by": {"columns": ["c"], "keys": ["a", "b", "c", "d"]},
        },
    ),
    "threshold": (
        {"domain.upper": [2.0**40, 1.0], "domain.step": 1.0},
        {"privacy.policy": {"partition": [0.25, 0.5]}},
        {"privacy.policy": {"distance": [0.25, 0]}},
    ),
    "triangles": ({"params": {"scale_share": 0.0}},),
}
"""Further settings of a task that change what is drawn."""


@dataclass(frozen=True)
class Setting:
    """One plan that a job can ask for."""

    name: str
    job: Job

    @property
    def published(self) -> bool:
        """Whether it is the published 1-cluster, which serves huge targets, and few distinct points."""
        return self.plan.method == "paper"

    @property
    def copies(self) -> int:
        """How many records each one stands for."""
        return 10**9 if self.published else 1

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.job, SALT)


def _base() -> dict[str, Any]:
    return {
        "task": "one_cluster",
        "input": {"path": "/nowhere/rows.parquet", "columns": ["x", "y"], "checks": 0.0},
        "domain": {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-10},
        "privacy": {"epsilon": 1.0, "delta": 1e-6},
        "params": {"target": 400},
        "output": "/nowhere/out",
    }


def _with(job: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    for key, value in changed.items():
        *parents, last = key.split(".")
        part = job
        for parent in parents:
            part = part[parent]
        part.pop(last, None) if value is ... else part.__setitem__(last, copy.deepcopy(value))
    return job


def changed_job(changed: dict[str, Any]) -> dict[str, Any]:
    """Return a small job with dotted keys set; ... removes one."""
    return _with(_base(), changed)


def choices(task: str) -> list[dict[str, str]]:
    """Return every combination of the values of those parameters that name a choice."""
    hints = get_type_hints(TASKS[task].params)
    known = TASKS[task].core
    named = {
        field.name: list(known.choices if field.name == known.choice else get_args(hints[field.name]))
        for field in fields(TASKS[task].params)
        if field.name in CHOICES
    }
    return [dict(zip(named, values, strict=True)) for values in itertools.product(*named.values())]


def _policies(job: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    axes = len(job["input"]["columns"])
    for policy in POLICIES:
        given = dict(policy)
        if "partition" in given:
            given["partition"] = [given["partition"]] * axes
        if given.pop("constraints", False):
            given["constraints"] = [{"lower": [0.0] * axes, "upper": [0.5] * axes, "count": 100}]
        yield next(iter(policy)) + ("+counts" if "constraints" in given else ""), given


def jobs_of(task: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the name and the job of every setting of a task, also of those that are refused."""
    variants = ({}, *VARIANTS.get(task, ()))
    for number, variant in enumerate(variants):
        for choice in choices(task):
            for relation in ("add_or_remove_one", "replace_one"):
                job = _with(_with(_with(_base(), changes(task)), FITTED.get(task, {})), variant)
                job["params"] |= choice
                if "paper" in choice.values():  # serves huge targets, and tells boxes apart on a fine grid
                    job["params"]["target"], job["domain"]["step"] = 2 * 10**10, 2.0**-24
                job["privacy"]["neighbors"] = relation
                name = "-".join([task, *choice.values(), relation, *([str(number)] if number else [])])
                yield name, job
                if relation == "replace_one":
                    for policy, given in _policies(job):
                        limited = {**job, "privacy": {**job["privacy"], "policy": given}}
                        yield f"{name}-{policy}", limited


JOINT: dict[str, tuple[str, ...]] = {
    "gaussian": ("k_means", "k_median", "k_means", "one_cluster"),
    "pure": ("histogram", "cdf", "quantiles", "median", "threshold", "interior_point", "ranges"),
    "mixed": ("k_means", "histogram", "quantiles", "minimum"),
    "grouped": ("statistics", "histogram", "quantiles"),
    "contributed": ("statistics", "statistics", "k_means", "quantiles"),
    "by_group": ("histogram", "k_means", "statistics", "cdf"),
    "by_group_of_units": ("quantiles", "k_means", "statistics", "median"),
    "under_distance": ("cdf", "statistics", "quantiles", "ranges"),
    "under_attribute": ("histogram", "threshold", "k_means", "statistics"),
}
"""Tasks of jobs of several questions; each question is a setting of its own."""

PRIVATE = {"columns": ["c"], "keys": "private"}
PUBLIC = {"group_by": {"columns": ["g"], "keys": ["a", "b", "c"]}}
JOINT_MORE: dict[str, dict[str, dict[str, Any]]] = {
    "grouped": {"statistics": {"group_by": PRIVATE}},
    "contributed": {"statistics": {"group_by": PRIVATE, "contributions": {"groups": 2, "rows": 3}}},
    "under_distance": {"statistics": {"checks": 0.0}, "ranges": {"checks": 0.0}},
    "under_attribute": {"threshold": {"checks": 0.0}, "statistics": {"checks": 0.0}},
    "by_group": {"histogram": PUBLIC, "k_means": PUBLIC},
    "by_group_of_units": {
        "quantiles": {**PUBLIC, "contributions": {"groups": 2}, "checks": 0.0},
        "k_means": {**PUBLIC, "contributions": {"groups": 1}, "checks": 0.0},
        "statistics": {"group_by": PRIVATE, "contributions": {"groups": 2, "rows": 3}},
    },
}
"""Further keys of questions by their task, by the name of their job."""

JOINT_POLICIES: dict[str, dict[str, Any]] = {
    "under_distance": {"distance": 2.0**-8},
    "under_attribute": {"secrets": "attribute"},
}
"""The policy of a job, under `replace_one`, by the name of the job."""


@dataclass(frozen=True)
class QuestionSetting(Setting):
    """A question of a job of several, with the plan that it has among them."""

    joint: JointPlan
    question: str

    @cached_property
    def plan(self) -> Plan:
        return cast(Plan, self.joint.plans[self.question])


def joint_job(tasks: tuple[str, ...], relation: str, more: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a small job of several questions; those of some tasks with further keys, maybe with a unit."""
    questions = {}
    for number, task in enumerate(tasks):
        job = _with(_with(_base(), changes(task)), FITTED.get(task, {}))
        own = {"columns": job["input"]["columns"], "checks": 0.05 if number % 2 else 0.0}
        own |= {key: job[key] for key in ("task", "domain", "params")}
        questions[f"{number}-{task}"] = own | more.get(task, {})
    base = _base()
    privacy = {"epsilon": 1.0 * len(tasks), "delta": 1e-6 * len(tasks), "neighbors": relation}
    unit = {"unit": "u"} if any("contributions" in each for each in more.values()) else {}
    rows = {"path": base["input"]["path"], **unit}
    shared = {"input": rows, "output": base["output"], "privacy": privacy}
    return {**shared, "questions": questions}


@cache
def joint_plans() -> dict[str, tuple[QuestionsJob, JointPlan]]:
    """Return small jobs of several questions with their plans, by name."""
    found = {}
    for name, tasks in JOINT.items():
        for relation in ("add_or_remove_one", "replace_one"):
            asked = tuple(task for task in tasks if task in SETTINGS_OF)
            if asked:
                raw = joint_job(asked, relation, JOINT_MORE.get(name, {}))
                if relation == "replace_one" and name in JOINT_POLICIES:
                    raw["privacy"]["policy"] = JOINT_POLICIES[name]
                    for question in raw["questions"].values():
                        question["checks"] = 0.0
                job = check_several(raw)
                salts = {question: SALT[:-1] + bytes([i]) for i, question in enumerate(job.jobs)}
                found[f"{name}-{relation}"] = job, make_joint_plan(job, salts)
    return found


def _question_settings() -> Iterator[Setting]:
    for name, (job, plan) in joint_plans().items():
        for question, (own, its) in questions_of(job, plan).items():
            if not isinstance(its, GroupedPlan):  # which are among those of groups
                yield QuestionSetting(f"questions-{name}-{question}", own, plan, question)


GROUPS: dict[str, dict[str, Any]] = {
    "rows": CHECKED,
    "units": {"input.unit": "u", "contributions": {"groups": 2}},
}
"""What changes in a job that is asked about each of three groups, `a`, `b` and `c`, by itself."""


@dataclass(frozen=True)
class GroupSetting(Setting):
    """A group of a job that is asked about each of several groups, with the plan that it has."""

    grouped: GroupedPlan

    @cached_property
    def plan(self) -> Plan:
        return self.grouped.each


def grouped_tasks() -> list[str]:
    """Return the tasks that are asked about each group by itself."""
    return [task for task in SETTINGS_OF if issubclass(TASKS[task].job or object, GroupsJob)]


@cache
def grouped_plans() -> dict[str, tuple[GroupsJob, GroupedPlan]]:
    """Return small jobs by group with their plans, by name; also those of questions beside others."""
    found = {}
    for task, (name, more), relation in itertools.product(
        grouped_tasks(), GROUPS.items(), ("add_or_remove_one", "replace_one")
    ):
        if TASKS[task].subsamples:  # a function has no checks
            more = {key: value for key, value in more.items() if key != "input.checks"}
        raw = _with(_with(_with(_base(), changes(task)), FITTED.get(task, {})), more)
        raw["privacy"] |= {"neighbors": relation, "epsilon": 3.0}  # so that a group makes all draws
        job = check_job(raw | {"group_by": {"columns": ["g"], "keys": ["a", "b", "c"]}})
        found[f"groups-{task}-{name}-{relation}"] = job, make_grouped_plan(job, SALT)
    for name, (several, joint) in joint_plans().items():
        for question, (own, its) in questions_of(several, joint).items():
            if isinstance(its, GroupedPlan):
                found[f"groups-{name}-{question}"] = cast(GroupsJob, own), its
    return found


def _group_settings() -> Iterator[Setting]:
    for name, (job, plan) in grouped_plans().items():
        yield GroupSetting(name, job.of_each(plan.budget), plan)


@contextmanager
def shared_drafts() -> Iterator[None]:
    """Draft equal methods once: settings that differ in the method they ask for compare the same ones.

    Drafts are told apart by all that a method holds, but for the name of another one that is asked for.
    """
    alone = core.task._calibrated
    drafts: dict[tuple[type, str], Any] = {}

    def shared(method: Method[Any]) -> Any:
        params = method.setting.params
        if getattr(params, "method", method.name) != method.name:
            with suppress(InvalidValue):  # some parameters are for one method alone
                params = replace(params, method="auto")
        key = type(method), repr(replace(method, setting=replace(method.setting, params=params)))
        if key not in drafts:
            try:
                drafts[key] = alone(method)
            except InvalidValue as refusal:
                drafts[key] = refusal
        if isinstance(drafts[key], InvalidValue):
            raise drafts[key]
        return drafts[key]

    core.task._calibrated = shared
    try:
        yield
    finally:
        core.task._calibrated = alone


@cache
def settings() -> tuple[Setting, ...]:
    """Return every setting that is not refused."""
    with shared_drafts():
        found = [*_question_settings(), *_group_settings()]
        for task in SETTINGS_OF:
            for name, raw in jobs_of(task):
                try:
                    setting = Setting(name, check_job(raw))
                    _ = setting.plan
                except JobError:
                    continue
                found.append(setting)
    return tuple(found)


def blocks(setting: Setting, shape: str, n: int = 900) -> list[Block]:
    """Return records that suit a setting, in two blocks: of one of several shapes, with rows left out.

    Args:
        setting: see above.
        shape: `uniform`, `powers` (of two), `one_value`, `two_values`, `two_clumps`, `few` or `empty`; the
            latter two have other numbers of records, unless that number is public.
        n: how many records the others have.
    """
    grid = setting.job.grid
    public = setting.job.privacy.neighbors == "replace_one"
    if setting.job.task == "k_cover":
        n = max(n, 2 * (setting.job.task_params.target or 0))  # with fewer, the first search finds nothing
    if setting.job.task == "interior_point":
        n = max(n, setting.plan.promises["records_needed"])  # with fewer, most methods draw nothing
    if setting.published:
        n = 60
    size = n if public else {"few": 40, "empty": 0}.get(shape, n)
    rng = np.random.default_rng(len(shape))
    extents = np.asarray(grid.extents)
    if shape == "one_value":
        points = np.tile(extents // 3, (size, 1))
    elif shape == "powers":
        points = 1 << rng.integers(0, [int(extent).bit_length() for extent in extents], (size, len(extents)))
    elif shape in ("two_values", "two_clumps"):
        points = np.where(rng.random((size, 1)) < 0.5, extents // 5, extents * 4 // 5)
        narrow = 10**5 if setting.published else 50
        width = 1 if shape == "two_values" else np.maximum(2, extents // narrow)
        points = points + rng.integers(0, width, (size, len(extents)))
    else:
        points = rng.integers(0, extents + 1, (size, len(extents)))
    points = np.minimum(points, extents).astype(np.int64)
    if grid.geography is not None:
        points = np.clip(np.rint(grid.onto(points)), 0, extents).astype(np.int64)  # where rows can be
    if setting.job.task == "mst_cost" and setting.job.task_params.change == "weight":
        points[:, :2] = np.random.default_rng(0).integers(0, extents[:2] + 1, (size, 2))  # public
    if setting.job.task == "sample_and_aggregate":
        count = setting.job.task_params.blocks
        answered = {"few": 40, "empty": 0}.get(shape, count)  # the other blocks failed
        points = np.resize(points, (count, len(extents)))[:answered] if answered else points[:0]
    ids = np.arange(len(points), dtype=np.uint64)
    half = len(points) // 2
    outside = rng.integers(0, 9, 2 * grid.columns)  # counted by jobs with checks alone
    parts = [Block(points[:half], ids[:half], outside), Block(points[half:], ids[half:])]
    return [with_groups(setting, part) for part in parts]


_FEW = np.array([b'["b"]', b'["longer"]', b'["a"]'])  # as rows bring them, in no order
_ALONE = np.array([b'["b"]', b'["alone, too"]', b'["alone"]'])


def with_groups(setting: Setting, block: Block, alone: bool = False, few: bool = False) -> Block:
    """Return the records with groups that follow from their points, if the job has groups.

    Args:
        setting: see above.
        block: the records.
        alone: whether all of them are in a group that no other record is in, where keys are private.
        few: whether a single record stays one in each of its groups.

    With contributions a single record becomes a unit that is in as many groups as it may, with as many
    records as it may in each of them, or one if `few`. Other records are of units with several records in one
    group.
    """
    block = _with_keys(setting, block, alone)
    bounds = setting.job.bounds
    if bounds is None or not len(block.ids):
        return block
    groups = np.zeros(len(block.ids), np.int64) if block.groups is None else block.groups
    if len(groups) > 1:
        place = np.zeros(len(groups), np.int64)
        for group in np.unique(groups):
            place[groups == group] = np.arange(np.count_nonzero(groups == group)) // bounds.rows
        ids = (int(block.ids[0]) << 30) + (groups << 20) + place
        return replace(block, ids=ids.astype(np.uint64))
    every = groups[0] + np.arange(bounds.groups).repeat(1 if few else bounds.rows)
    many = len(every)
    return replace(
        block,
        points=block.points.repeat(many, axis=0),
        ids=block.ids.repeat(many),
        groups=None if block.labels is None else every % len(block.labels),
    )


def _with_keys(setting: Setting, block: Block, alone: bool) -> Block:
    keys = setting.job.group_keys
    if keys is None:
        return block
    if keys.labels is not None:
        labels = keys.labels.array
        groups = block.points.sum(axis=1) % max(1, len(labels) - 1)  # one is empty
    elif alone:
        labels, groups = _ALONE, np.ones(len(block.points), np.int64)
    else:
        labels, groups = _FEW, block.points.sum(axis=1) % len(_FEW)
    return replace(block, groups=groups.astype(np.int64), labels=labels)
