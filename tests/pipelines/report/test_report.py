"""The report of a release: its rounds, releases of earlier versions, and releases that were changed."""

import html
import json
import math
import re

import pytest

from pipelines.answers.text import number
from pipelines.report.report import posterior, render


@pytest.fixture
def release(bench):
    assert bench.run().exit_code == 0
    return bench.release()


def test_each_round_has_its_purpose_and_its_share(release):
    page = render(release)
    assert sum(entry["share"] for entry in release["rounds"]) == pytest.approx(1)
    for entry in release["rounds"]:
        assert f"{entry['round']}<small>{entry['purpose']}</small>" in page
        assert f"{entry['round']} <b>{100 * entry['share']:.0f}%</b>" in page


def test_the_choice_of_the_method_is_explained(release):
    assert release["why"] in html.unescape(render(release))
    release["why"] = "Methods are compared by their age. new has the smallest, 1; old has 2."
    release["comparison"] = {"by": "their age", "errors": {"new": 1.0, "old": 2.0, "endless": None}}
    page = render(release)
    assert release["why"] in page
    for name, figure in (("new", "1"), ("old", "2"), ("endless", "none")):
        assert f'<tr><th scope="row">{name}</th><td class="n">{figure}</td></tr>' in page


def test_a_release_of_an_earlier_version_says_nothing_of_other_methods(release):
    del release["why"], release["comparison"]
    assert "compared" not in render(release)


def test_a_release_of_an_earlier_version_has_names_of_rounds_alone(release):
    rounds = release.pop("rounds")
    page = render(release)
    for entry in rounds:
        assert entry["round"] in page
        assert entry["purpose"] not in page
    assert 'class="bar"' not in page


def test_a_round_without_draws_needs_no_noise(release):
    release["rounds"].append({"round": "free", "purpose": "what is public", "share": 0.0})
    assert "free<small>what is public</small>" in render(release)
    assert "The round needs no noise." in render(release)


def test_a_changed_result_is_one_sentence(bench, release):
    release["result"]["radius"] = "wide"
    (bench.folder / "out" / "release.json").write_text(json.dumps(release))
    refused = bench.shoal("report", str(bench.folder / "out"))
    assert refused.exit_code == 2
    assert refused.stderr == "shoal: result.radius is 'wide', which is not a value of its task.\n"


def test_a_report_has_no_control_characters(bench, release):
    release["software"]["python"] = "\x1b[31m\u202e3"
    (bench.folder / "out" / "release.json").write_text(json.dumps(release))
    assert bench.shoal("report", str(bench.folder / "out")).exit_code == 0
    page = (bench.folder / "out" / "report.html").read_text()
    assert r"python \x1b[31m\u202e3" in page and page.count("\n") > 100


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.5, 1.0, 2.0, 4.594, 4.6, 5.0, 9.3, 30.0, 1e4])
def test_the_highest_certainty_is_rounded_up(epsilon):
    """The bound is reached: two cells whose probabilities differ by the factor e^epsilon."""
    reached = 100 / (1 + math.exp(-min(epsilon, 700)))
    shown = float(posterior(epsilon).rstrip("%"))
    assert reached <= shown <= min(100, reached + (1 if reached < 99 else 0.01))


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_how_often_the_certainty_may_be_exceeded_holds_and_is_reached(release, epsilon, delta):
    """A release shows the row with a small probability, or makes it likelier by e^(epsilon + 1) with another.

    A Gaussian mechanism of exactly this delta has a loss above epsilon + 1 less often than is said. One
    outcome of just this loss may have the probability that is said, rounded up to three digits.
    """
    release["privacy"] |= {"epsilon": epsilon, "spent_delta": delta, "delta": 10 * delta}
    assert f"plus 1 in {number(1 / delta)} (δ)" in render(release)
    said = re.search(r"above (\S+) with a probability of at most 1 in ([\d,.e+]+)", render(release))
    assert said is not None and said[1] == posterior(epsilon + 1)
    most = 1 / float(said[2].replace(",", ""))
    mass = most / 1.01 - 1e-15  # its hockey stick is below delta, and that of a little more is above it
    assert mass * (1 - math.exp(-1.0)) < delta < 1.02 * most * (1 - math.exp(-1.0))
    low, high = 1e-3, 1e3
    for _ in range(200):  # mu of a Gaussian whose hockey stick is delta
        mu = math.sqrt(low * high)
        hockey = _tail(epsilon / mu - mu / 2) - math.exp(epsilon) * _tail(epsilon / mu + mu / 2)
        low, high = (mu, high) if hockey < delta else (low, mu)
    assert _tail((epsilon + 1) / mu - mu / 2) <= most


@pytest.mark.parametrize(("epsilon", "told"), [(8.5, True), (9.5, False), (30.0, False)])
def test_certainty_is_not_exceeded(release, epsilon, told):
    release["privacy"] |= {"epsilon": epsilon, "spent_delta": 1e-6, "delta": 1e-6}
    page = render(release)
    assert "above 100%" not in page and ("because of δ it may be higher" in page) == told


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 5.0, 6.0, 12.0])
def test_the_factor_is_not_less_than_it_is(release, epsilon):
    release["privacy"] |= {"epsilon": epsilon}
    factor = re.search(r"becomes at most ([\d,.e+]+)", render(release))
    assert factor is not None
    assert math.exp(epsilon) <= float(factor[1].replace(",", "")) <= 1.011 * math.exp(epsilon)


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def test_without_delta_nothing_is_exceeded(release):
    release["privacy"] |= {"spent_delta": 0.0, "delta": 0.0}
    assert "because of δ" not in render(release)
