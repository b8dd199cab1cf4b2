"""The report of a release: its rounds, releases of earlier versions, and releases that were changed."""

import html
import json

import pytest

from pipelines.report.report import render


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
