"""What a plan says of its choice: the figure by which methods were compared, for each of them."""

import io

import pytest
from rich.console import Console

from pipelines.job.job import check_job
from pipelines.plan import describe, make_plan, show

JOB = {
    "task": "quantiles",
    "input": {"path": "/rows.parquet", "columns": ["x"]},
    "domain": {"lower": [0], "upper": [1], "step": 0.25},
    "privacy": {"epsilon": 1, "delta": 0},
    "params": {"probabilities": [0.5, 0.9]},
    "output": "/out",
}


def described(**changes):
    job = check_job({**JOB, **changes})
    return describe(job, make_plan(job, bytes(16)))


def shown(plan):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    show(plan, console)
    return console.file.getvalue()


def test_every_method_has_the_figure_by_which_it_was_compared():
    plan = described()
    errors = plan["comparison"]["errors"]
    assert set(errors) == {plan["method"], *plan["alternatives"]}
    assert errors[plan["method"]] == min(errors.values())
    assert plan["why"].startswith(f"Methods are compared by {plan['comparison']['by']}. {plan['method']} has")
    text = shown(plan)
    assert "compared by" in text
    for name, error in errors.items():
        assert f"{error:.4g}" in plan["why"], name
        assert f"{error:.4g}" in next(line for line in text.splitlines() if line.startswith(f" {name} "))


def test_a_method_that_is_asked_for_is_told_with_what_auto_would_take():
    best = described()
    (other, *_) = best["alternatives"]
    asked = described(params={**JOB["params"], "method": other})
    assert asked["why"].startswith(
        f"params.method asks for it; auto would take {best['method']}. Methods are compared by"
    )
    assert asked["comparison"] == best["comparison"]


@pytest.mark.parametrize("method", ["practical", "paper"])
def test_a_method_without_a_figure_has_none(method):
    """The published 1-cluster is only taken by name: its figure is infinite."""
    plan = described(
        task="one_cluster",
        params={"target": 500, "method": method},
        privacy={"epsilon": 1, "delta": 1e-6, "neighbors": "replace_one"},
    )
    assert "paper has none" in plan["why"]
    assert "none" in next(line for line in shown(plan).splitlines() if line.startswith(" paper "))


def test_one_method_alone_is_not_compared():
    plan = described(task="k_median", params={"k": 2}, privacy={"epsilon": 1, "delta": 1e-6})
    assert plan["comparison"] is None
    assert "only method" in plan["why"]
    assert "compared" not in shown(plan)
