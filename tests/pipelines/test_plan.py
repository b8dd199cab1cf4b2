"""What a plan says of its choice: the figure by which methods were compared, for each of them."""

import io

import pytest
from rich.console import Console

from pipelines.errors import JobError
from pipelines.job.job import check_job
from pipelines.notes import _weak, notes
from pipelines.plan import describe, make_plan, show
from pipelines.tasks import TASKS
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes

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


TWO_METHODS = {
    "task": "statistics",
    "params": {"measures": ["sum", "mean"]},
    "privacy": {"epsilon": 1, "delta": 1e-6},
}


def test_promises_in_units_of_their_own_are_told_with_them():
    text = shown(described(**TWO_METHODS))
    assert "sum error (× largest value)" in text and "mean error (× half range / count)" in text


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


def test_an_upper_bound_between_grid_points_is_told():
    def told(upper, step):
        plan = described(domain={"lower": [0], "upper": [upper], "step": step})
        return [note for note in plan["notes"] if "domain.upper" in note]

    assert told(100.5, 1) == [
        "domain.upper of x is 100.5, which is not lower plus a multiple of step. The last grid point is 100, "
        "and larger values are moved to it."
    ]
    assert told(0.3, 0.1) == told(1, 0.25) == told(2**62 - 1, 1) == []
    assert "The last grid point is 9," in told(10, 3)[0]


def test_the_function_of_a_job_has_bounds_of_its_own():
    params = {"function": "a:b", "blocks": 100, "outputs": {"lower": [0], "upper": [1], "step": 0.3}}
    job = check_job({**{k: v for k, v in JOB.items() if k != "domain"}, "task": "sample_and_aggregate",
                     "privacy": {"epsilon": 1, "delta": 1e-6}, "params": params})  # fmt: skip
    notes = describe(job, make_plan(job, bytes(16)))["notes"]
    assert any(note.startswith("params.outputs.upper of value 0 is 1, ") for note in notes)


def test_nothing_is_promised_under_no_heading():
    """Smooth sensitivity promises nothing, so there is no heading above an empty list."""
    smooth = described(task="median", params={"method": "smooth"}, privacy={"epsilon": 1, "delta": 1e-6})
    assert "Promised," not in shown(smooth)
    assert "\nThe error is not promised." in shown(smooth)
    ranks = described(task="median", params={"method": "exponential"})
    assert "Promised, with probability 90% or more:" in shown(ranks)
    error = ranks["accuracy"]["promises"]["rank_error"]
    assert 1 <= error < 100
    assert f"Among 10,000 rows, for example, at most {error / 100:.2g}% of them lie between" in shown(ranks)


def test_the_example_of_a_rank_grows_as_epsilon_falls():
    """It is of the same number of rows, so that two plans can be compared."""
    says = [
        shown(described(task="median", params={}, privacy={"epsilon": e, "delta": 0}))
        for e in (1, 0.1, 0.001)
    ]
    assert ["Among 10,000 rows," in text for text in says] == [True, True, False]
    assert "Among 10,000,000 rows," in says[2]


def test_a_plan_says_why_its_costs_are_no_sum():
    alone = shown(described(task="median", params={}, privacy={"epsilon": 1, "delta": 0}))
    many = shown(
        described(task="k_cover", params={"k": 3, "target": 2000}, privacy={"epsilon": 3, "delta": 1e-6})
    )
    gaussian = shown(described(task="k_means", params={"k": 3}, privacy={"epsilon": 1, "delta": 1e-6}))
    assert "add up" not in alone
    assert "add up to epsilon 3." in many and "Composed at once" in many
    assert "are no epsilons that add up" in gaussian


def test_what_all_promises_share_is_said_once():
    of = {"group_by": {"columns": ["w"], "keys": "private"}, "privacy": {"epsilon": 1, "delta": 1e-6}}
    for measures in (["count"], ["count", {"quantiles": [0.5]}]):
        plan = described(task="statistics", params={"measures": measures}, **of)
        assert " ".join(plan["notes"]).count("share the failure probability") == 1


@pytest.mark.parametrize("task", TASKS)
def test_a_budget_that_protects_little_is_remarked_on(task):
    """Beside every task, and not beside usual budgets."""
    for privacy, said in (
        ({"epsilon": 1.0, "delta": 1e-6}, []),
        ({"epsilon": 1.0, "delta": 0.3}, ["privacy.delta is 0.3"]),
        ({"epsilon": 100.0, "delta": 1e-6}, ["privacy.epsilon is 100"]),
        ({"epsilon": 100.0, "delta": 0.3}, ["privacy.delta is 0.3", "privacy.epsilon is 100"]),
    ):
        job = check_job(
            changed_job({**changes(task), **{f"privacy.{name}": of for name, of in privacy.items()}})
        )
        assert [note.split(":")[0].split(",")[0] for note in _weak(job)] == said
    assert set(_weak(job)) <= set(notes(job, make_plan(job, bytes(16))))


@pytest.mark.parametrize("checks", [5e-324, 1e-320, 1e-100, 1e-17])
def test_checks_whose_noise_hides_everything_are_refused(checks):
    """5e-324 ended a plan with an error, and the release of 1e-320 could not be read again."""
    raw = {**JOB, "input": {**JOB["input"], "checks": checks}}
    with pytest.raises(JobError, match=f"^input.checks is {checks}: noise .* give 0, which turns"):
        make_plan(check_job(raw), bytes(16))
    raw["input"]["checks"] = 1e-12
    assert make_plan(check_job(raw), bytes(16)).rounds
