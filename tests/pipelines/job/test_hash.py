"""Jobs that differ in what a run does have other hashes: a run is charged, stored and found by its hash."""

import copy
from typing import Any

import pytest

from pipelines.job.job import check_raw
from pipelines.job.text import set_key

ROWS: dict[str, Any] = {
    "task": "statistics",
    "input": {"path": "/rows", "columns": ["x"], "unit": "who"},
    "domain": {"lower": [0], "upper": [8], "step": 1},
    "group_by": {"columns": ["city"], "keys": ["a", "b"]},
    "contributions": {"groups": 2, "rows": 3},
    "params": {"measures": ["count"]},
    "privacy": {"epsilon": 1.0, "delta": 1e-9},
    "output": "/out",
}
POINTS: dict[str, Any] = {
    "task": "histogram",
    "input": {"path": "/rows", "columns": ["x"]},
    "domain": {"lower": [0], "upper": [8], "step": 1},
    "params": {"cells": [4]},
    "privacy": {"epsilon": 1.0, "delta": 1e-9},
    "output": "/out",
}
FUNCTION: dict[str, Any] = {
    "task": "sample_and_aggregate",
    "input": {"path": "/rows", "columns": ["x", "y"]},
    "params": {
        "function": "a.b:c",
        "blocks": 100,
        "outputs": {"lower": [0], "upper": [8], "step": 1},
    },
    "privacy": {"epsilon": 1.0, "delta": 1e-9},
    "output": "/out",
}
SEVERAL: dict[str, Any] = {
    "input": {"path": "/rows"},
    "questions": {
        "a": {"task": "median", "columns": ["x"], "domain": POINTS["domain"]},
        "b": {"task": "median", "columns": ["y"], "domain": POINTS["domain"]},
    },
    "privacy": {"epsilon": 1.0, "delta": 0},
    "output": "/out",
}
DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        ROWS,
        {
            "input.where": "x > 1",
            "input.types": {"x": "integer"},
            "input.derive": {"y": "x"},
            "input.join": {"path": "/join", "on": "x"},
            "input.unit": "person",
            "domain.upper": [9],
            "domain.step": 0.5,
            "domain.units": {"x": "kWh"},
            "group_by.columns": ["town"],
            "group_by.keys": ["a", "c"],
            "group_by.truncate": {"city": "day"},
            "contributions.groups": 1,
            "contributions.rows": 2,
            "contributions.clamp": "unit",
            "params.measures": ["units"],
            "params.failure": 0.2,
            "params.parts": 2,
            "params.method": "laplace",
            "privacy.neighbors": "replace_one",
        },
    ),
    (
        POINTS,
        {
            "input.path": "/others",
            "input.columns": ["y"],
            "input.unit": "who",
            "input.count": "n",
            "input.checks": 0.0,
            "domain.lower": [-1],
            "domain.ball": {"center": [4], "radius": 4},
            "params.cells": [2],
            "params": {"cells": [4], "method": "sparse", "floor": 1},
            "privacy.epsilon": 1.5,
            "privacy.delta": 1e-8,
            "privacy.ledger": "/ledger.json",
            "output": "/elsewhere",
            "run_id": "monday",
        },
    ),
    (
        FUNCTION,
        {
            "input.unit": "who",
            "input.bounds": [[0, 1], [0, 2]],
            "params.function": "a.b:d",
            "params.arguments": {"k": 2},
            "params.outputs": {"lower": [0], "upper": [9], "step": 1},
            "params.blocks": 101,
            "params.time_limit": 30.0,
            "params.memory_limit": 500,
            "params.constant_time": True,
            "params.isolation": "sandbox",
            "params.default": [1.0],
        },
    ),
    (
        SEVERAL,
        {
            "questions.a.share": 2,
            "questions.b.share": 2,
            "questions.a.checks": 0.0,
            "questions.a.columns": ["z"],
            "questions.a.params": {"quantile": 0.25},
            "input.unit": "who",
            "privacy.epsilon": 2.0,
        },
    ),
]


def test_each_option_changes_the_hash() -> None:
    for job, changes in DIFFERENT:
        jobs = [job, *(set_key(job, name, value) for name, value in changes.items())]
        hashes = [check_raw(copy.deepcopy(each)).hash() for each in jobs]
        same = [name for name, own in zip(["", *changes], hashes, strict=True) if hashes.count(own) > 1]
        assert not same
    orders = [{**ROWS["input"], "keep": "last", "order": order} for order in ("t", "s")]
    kept = [{"keep": "mean"}, {"keep": "sum"}, {}]
    inputs = [*orders, *({**ROWS["input"], **each} for each in kept)]
    assert len({check_raw({**POINTS, "input": each}).hash() for each in inputs}) == len(inputs)
    policies = [{"secrets": "attribute"}, {"distance": 2}, {"partition": [2]}, {"secrets": "full"}, None]
    private = [{**POINTS["privacy"], "neighbors": "replace_one", "policy": each} for each in policies]
    rows = {**POINTS["input"], "checks": 0.0}
    assert len({check_raw({**POINTS, "input": rows, "privacy": each}).hash() for each in private}) == 5


@pytest.mark.parametrize(
    ("job", "name", "value"),
    [
        (ROWS, "contributions.guess", {"groups": 2, "rows": 3}),
        (ROWS, "contributions.clamp", "row"),
        (POINTS, "input.checks", 0.01),
        (POINTS, "params.method", "auto"),
        (FUNCTION, "params.isolation", "process"),
        (SEVERAL, "questions.a.share", 1.0),
    ],
)
def test_a_default_and_what_changes_nothing_keep_the_hash(job: Any, name: str, value: Any) -> None:
    """A run that was stored and charged before it was written is the same run."""
    assert check_raw(copy.deepcopy(job)).hash() == check_raw(set_key(job, name, value)).hash()


def test_the_name_of_a_run_of_several_questions_follows_from_all_of_them() -> None:
    others = [
        SEVERAL,
        set_key(SEVERAL, "questions.b.columns", ["z"]),
        set_key(SEVERAL, "questions.b.share", 3),
    ]
    names = [check_raw(copy.deepcopy(each)).run_id for each in others]
    assert len(set(names)) == 3 and all(len(name) == 16 for name in names)
