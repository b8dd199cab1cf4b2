"""The runner itself: what is caught, what is not, and what does not fit the code."""

import subprocess
from pathlib import Path

import pytest

from tests.mutants.mutant import Mutant, MutantError, Selection
from tests.mutants.runner import report, run_tests

pytestmark = pytest.mark.slow  # each starts pytest several times

TESTS = Selection(("test_counts.py",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of one function and its test."""
    (tmp_path / "counts.py").write_text("def doubled(n):\n    return 2 * n\n")
    (tmp_path / "test_counts.py").write_text(
        "from counts import doubled\n\n\n"
        "def test_one():\n    assert doubled(1) == 2\n\n\n"
        "def test_none():\n    assert doubled(0) == 0\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def mutant(old: str, new: str, tests: Selection = TESTS) -> Mutant:
    return Mutant(12, "counts.py", "wrong", old, new, tests)


def test_a_mutant_that_a_test_fails_on_is_caught(root: Path, capsys: pytest.CaptureFixture) -> None:
    assert report(root, [mutant("2 * n", "3 * n")]) == 0
    assert "12 | counts.py | wrong | test_counts.py::test_one" in capsys.readouterr().out
    assert "2 * n" in (root / "counts.py").read_text()  # the tree itself stays as it is


def test_a_mutant_that_survives_is_told(root: Path, capsys: pytest.CaptureFixture) -> None:
    survivor = mutant("2 * n", "3 * n", Selection(("test_counts.py",), "none"))
    assert report(root, [mutant("2 * n", "n"), survivor]) == 1
    said = capsys.readouterr().out
    assert said.count("NOT CAUGHT") == 1 and "1 survived" in said


@pytest.mark.parametrize("old", ["4 * n", "n"])
def test_a_text_that_is_not_there_once_is_an_error(
    root: Path, old: str, capsys: pytest.CaptureFixture
) -> None:
    """Before anything is run."""
    assert report(root, [mutant("2 * n", "3 * n"), mutant(old, "0")]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "repair the mutant 'wrong'" in said.err


def test_a_file_that_is_gone_is_an_error(root: Path) -> None:
    with pytest.raises(MutantError, match=r"gone\.py does not exist"):
        Mutant(12, "gone.py", "wrong", "a", "b", TESTS).applied(root)


def test_tests_that_fail_anyway_catch_nothing(root: Path, capsys: pytest.CaptureFixture) -> None:
    (root / "test_counts.py").write_text("def test_one():\n    assert False\n")
    assert report(root, [mutant("2 * n", "3 * n")]) == 1
    assert "fails as it is: test_counts.py::test_one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("new", "only"), [("2 *", ""), ("3 * n", "no_such_test")], ids=["cannot be imported", "selects none"]
)
def test_tests_that_do_not_run_catch_nothing(
    root: Path, new: str, only: str, capsys: pytest.CaptureFixture
) -> None:
    assert report(root, [mutant("2 * n", new, Selection(("test_counts.py",), only))]) == 1
    assert "pytest ended with exit code" in capsys.readouterr().out


def test_tests_that_never_end_catch_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.runner.LONGEST", 0.01)
    assert "took more than" in str(run_tests(TESTS, root).trouble)
