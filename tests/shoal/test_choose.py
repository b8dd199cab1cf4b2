"""Parameters are chosen from Python as by the command."""

import json

import pytest

import shoal
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes

JOB = """
task: median
input: {columns: [age]}
domain: {lower: [0], upper: [120], step: 1}
privacy: {epsilon: 1.0, delta: 0}
"""


def test_a_solved_plan_is_that_of_the_command(tmp_path):
    bench = Bench(tmp_path)
    job = bench.write(bench.changed(changes("median")))
    given = ("--solve", "privacy.epsilon", "--for", "rank_error=20", "--json")
    found = shoal.solve(job, "privacy.epsilon", "rank_error", 20)
    assert found.values == json.loads(bench.shoal("plan", job, *given).stdout)
    assert found.error["rank_error"] <= 20
    assert str(found).startswith("privacy.epsilon is ")


def test_a_sweep_is_a_curve_in_a_notebook():
    found = shoal.sweep(JOB, "privacy.epsilon", 0.5, 2, "rank_error")
    promised = [point["figures"]["rank_error"]["promised"] for point in found.values["points"]]
    assert promised == sorted(promised, reverse=True)
    assert "&lt;svg" in found._repr_html_() and "┤" in str(found)
    measured = shoal.sweep(JOB, "privacy.epsilon", 0.5, 2, "rank_error", rows=500, shape="clumps")
    assert measured.values["made_up"] == {"rows": 500, "shape": "clumps"}
    cdf = JOB.replace("median", "cdf") + "params: {ranges: [[18, 65]]}"
    one = shoal.sweep(cdf, "privacy.epsilon", 0.5, 2, "range_error")
    assert list(one.values["failure"]) == ["range_error"]


def test_a_simulation_shows_what_comes_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = shoal.simulate(JOB, 500, "heavy")
    assert found.values["simulated"][0]["figures"][0]["promise"] == "rank_error"
    assert found._repr_html_().startswith("<pre>These 500 rows are made up (heavy).")
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_one_sentence():
    for call, says in (
        (lambda: shoal.solve(JOB, "privacy.delta", "rank_error", 3), "it must be privacy.epsilon"),
        (lambda: shoal.sweep(JOB, "privacy.epsilon", 2, 1), "the lower one first"),
        (lambda: shoal.simulate(JOB, 100, "square"), "the shapes are"),
    ):
        with pytest.raises(shoal.ShoalError, match=says) as refused:
            call()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [5, [], {}, b"x", "", None])
def test_arguments_that_are_no_texts_are_one_sentence(wrong):
    for call in (
        lambda: shoal.solve(JOB, wrong, "rank_error", 5),
        lambda: shoal.solve(JOB, "privacy.epsilon", wrong, 5),
        lambda: shoal.sweep(JOB, wrong, 1, 2),
    ):
        with pytest.raises(shoal.ShoalError, match=r"give the name of a (key|promise), such as "):
            call()
    if wrong is not None:
        with pytest.raises(shoal.ShoalError, match="give the name of a promise, such as rank_error"):
            shoal.sweep(JOB, "privacy.epsilon", 1, 2, wrong)
