"""A command loads what its job needs: a plan no engine, a pure draw no accountant, a task no other task."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipelines.tasks import TASKS
from tests.pipelines.conftest import write_rows
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import LINE, changes

HEAVY = {
    *("apache_beam", "google", "httplib2", "jinja2", "opendp", "pandas", "polars", "pyarrow", "sklearn"),
    "vl_convert",
}
"""What no plan needs."""

ACCOUNTING = {"dp_accounting", "scipy"}
"""What no plan needs before it is known what its task draws."""

PURE: dict[str, dict[str, Any]] = {
    "histogram": {
        "task": "histogram",
        "params": {"cells": [8, 8], "method": "dense"},
        "privacy.delta": 0,
    },
    "quantiles": {
        "task": "quantiles",
        **LINE,
        "params": {"probabilities": [0.5]},
        "privacy.delta": 0,
    },
    "interior_point": {"task": "interior_point", **LINE, "params": {"method": "exponential"}},
    "median": {"task": "median", **LINE, "params": {"method": "exponential", "interval_share": 0.0}},
    "statistics": {"task": "statistics", **LINE, "params": {"measures": ["count", "mean"]}},
}
"""Jobs of a few pure draws. Those of statistics are compared with Gaussian ones."""

BUILT_OF = {
    "bounds": {"minimum", "quantiles"},
    "interior_point": {"one_cluster"},
    "k_cover": {"one_cluster"},
    "sample_and_aggregate": {"one_cluster"},
    "statistics": {"minimum", "quantiles"},
    "threshold": {"interior_point"},
}
"""The tasks that others use as a part."""

Loaded = dict[str, set[str]]


def load(first: str, commands: dict[str, list[str]]) -> Loaded:
    """Return what is loaded after each command, by its name, and under "" what is loaded before any."""
    lines = [json.dumps(arguments) for arguments in commands.values()]
    told = subprocess.run(
        [sys.executable, "-m", "tests.pipelines.loaded", first, *lines],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    return dict(zip(["", *commands], map(set, json.loads(told.stdout)), strict=True))


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, Any]], str]:
    folder = tmp_path_factory.mktemp("jobs")

    def write_job(name: str, changed: dict[str, Any]) -> str:
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(changed_job(changed)))
        return str(path)

    return write_job


@pytest.fixture(scope="module")
def planned(write: Callable[[str, dict[str, Any]], str]) -> Loaded:
    """The plans of one job of every task. The accountant, which most need, is loaded before them."""
    return load("dp_accounting", {task: ["plan", write(task, changes(task))] for task in TASKS})


@pytest.fixture(scope="module")
def purely_planned(write: Callable[[str, dict[str, Any]], str]) -> Loaded:
    return load("", {name: ["plan", write(f"pure-{name}", changed)] for name, changed in PURE.items()})


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def parts_of_scipy(modules: set[str]) -> set[str]:
    """Return scipy's parts, such as scipy.stats; the package itself loads none of them."""
    named = {module.split(".")[1] for module in modules if module.startswith("scipy.")}
    return {name for name in named if not name.startswith("_")} - {"version"}


def own_modules(task: str) -> set[str]:
    spoken = TASKS[task]
    return {spoken.core.params.__module__, spoken.task_at.partition(":")[0], spoken.answers_at}


@pytest.mark.parametrize("task", TASKS)
def test_a_plan_loads_neither_engine_nor_arrow_nor_a_client_of_a_cloud(task: str, planned: Loaded) -> None:
    """Only the plan of a task with a function needs Arrow, because it tries to import the function."""
    needed = {"pyarrow"} if TASKS[task].subsamples else set()
    assert packages(planned[task]) & HEAVY == needed


@pytest.mark.parametrize("task", TASKS)
def test_a_plan_loads_no_other_task(task: str, planned: Loaded) -> None:
    parts = set().union(*map(own_modules, {task, *BUILT_OF.get(task, ())}))
    others = set().union(*map(own_modules, TASKS)) - parts
    assert own_modules(task) <= planned[task]
    assert not planned[task] & others


def test_what_all_plans_share_is_of_no_task(purely_planned: Loaded) -> None:
    assert not purely_planned[""] & set().union(*map(own_modules, TASKS))
    assert not packages(purely_planned[""]) & (HEAVY | ACCOUNTING)


@pytest.mark.parametrize("name", PURE)
def test_a_plan_of_few_pure_draws_needs_no_accountant(name: str, purely_planned: Loaded) -> None:
    modules = purely_planned[name]
    assert not packages(modules) & (HEAVY | {"dp_accounting"})
    assert not parts_of_scipy(modules)


def test_choosing_needs_neither_beam_nor_an_accountant(write: Callable[[str, dict[str, Any]], str]) -> None:
    """So it answers in well under a second where one pure draw is all that is planned."""
    job = write("chosen", PURE["median"])
    solved = ["--solve", "privacy.epsilon", "--for", "rank_error=50"]
    loaded = load(
        "",
        {
            "init": ["init", "median"],
            "schema": ["schema", "median"],
            "solve": ["plan", job, *solved],
            "sweep": ["plan", job, "--sweep", "privacy.epsilon=1..2"],
            "diff": ["diff", job, job],
            "simulate": ["plan", job, "--simulate", "100"],
        },
    )
    arrow = {"diff", "simulate"}  # which read and make releases
    for name in ("init", "schema", "solve", "sweep", *arrow):
        modules = loaded[name]
        assert not packages(modules) & (
            (HEAVY | {"dp_accounting"}) - ({"pyarrow"} if name in arrow else set())
        ), name


def test_what_predicts_costs_loads_no_beam() -> None:
    """It runs the job in processes of its own, and Beam would warn on standard error."""
    modules = load("pipelines.run.cost", {})[""]
    assert "numpy" in packages(modules) and "apache_beam" not in packages(modules)


def test_a_run_of_one_pure_draw_loads_no_more_than_beam(
    tmp_path: Path, write: Callable[[str, dict[str, Any]], str]
) -> None:
    """Beam loads clients of clouds and pandas by itself, where they are installed."""
    write_rows(tmp_path / "rows.parquet", np.random.default_rng(0).random((1000, 2)))
    places = {"input.path": str(tmp_path / "rows.parquet"), "output": str(tmp_path / "out")}
    job = write("run", {**PURE["histogram"], **places})
    modules = load("", {"run": ["run", job]})["run"]
    assert "apache_beam" in packages(modules)
    assert not packages(modules) & {"dp_accounting", "opendp", "polars", "sklearn"}
    assert not parts_of_scipy(modules)
