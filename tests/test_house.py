"""Rules of the house that no linter knows."""

import ast
import itertools
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import AUDITS, SLOW, is_audit, is_slow

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("core", "transforms", "pipelines", "shoal")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PAGES = sorted(
    page
    for pattern in ("*.md", *(f"{folder}/**/*.md" for folder in (*PACKAGES, "deploy", "docs", "tests")))
    for page in ROOT.glob(pattern)
)

GENERATORS = {"default_rng", "Generator", "PCG64", "Philox", "SeedSequence", "seed"}
"""The parts of numpy.random that take an explicit seed."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def locked(lock: str) -> dict[str, str]:
    """Return each requirement of a lock, `name==version ; marker`, and the hashes under it."""
    entries = re.findall(r"^([a-z0-9].*?) \\\n((?:    --hash=.*\n)+)", (ROOT / lock).read_text(), re.M)
    return dict(entries)


def declared() -> list[str]:
    """Return the runtime requirements in pyproject.toml, with those of the extras of the image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    chosen = [need for name, needs in extras.items() if name != "dev" for need in needs]
    return [*project["dependencies"], *chosen]


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt", "requirements-oldest.txt"])
def test_a_lock_holds_pinned_hashed_packages_and_nothing_else(lock: str) -> None:
    entry = r"[a-z0-9][a-z0-9.,\[\]-]*==[^\s/]+( ; [^/]+)? \\"
    line_of_a_lock = re.compile(entry + r"|    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = (ROOT / lock).read_text().splitlines()
    assert not [line for line in lines if not line_of_a_lock.fullmatch(line)]
    assert locked(lock)


def test_every_declared_dependency_is_locked_in_both_locks() -> None:
    runtime, dev = locked("requirements.txt"), locked("requirements-dev.txt")
    names = {re.split(r"[\[=]", entry)[0] for entry in runtime}
    missing = [item for item in declared() if re.split(r"[^a-z0-9-]", item)[0] not in names]
    assert not missing
    assert runtime.items() <= dev.items(), "the tests would run other versions than a release"


def test_locks_have_both_ends_of_the_range_of_beam() -> None:
    """What `make test` and `make test-range` run on, and so what may be installed."""
    (needed,) = (need for need in declared() if need.startswith("apache-beam"))
    ends = [
        next(tuple(map(int, re.findall(r"\d+", entry)[:2])) for entry in locked(lock) if "beam==" in entry)
        for lock in ("requirements-oldest.txt", "requirements-dev.txt")
    ]
    (oldest, newest) = ends
    assert needed == f"apache-beam>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"


def numpy_random(tree: ast.AST) -> list[tuple[int, str, bool]]:
    """Return line, name and whether it is called without arguments, for each use of np.random."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    bare = {id(call.func) for call in calls if not (call.args or call.keywords)}
    return [
        (node.lineno, node.attr, id(node) in bare)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random")
    ]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_numpy_randomness_is_public_and_seeded(path: Path) -> None:
    """Noise comes from core.secure_noise alone; numpy may only expand an explicit, public seed."""
    tree = ast.parse(path.read_text())
    used = numpy_random(tree)
    assert not [(line, name) for line, name, bare in used if name not in GENERATORS or bare]
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    assert not [module for module in imported if module.startswith("numpy.random")], "write np.random.<name>"


def test_the_rule_on_randomness_has_teeth() -> None:
    code = "np.random.default_rng()\nnp.random.default_rng(7)\nnp.random.laplace(0, 1)\n"
    assert sorted(numpy_random(ast.parse(code))) == [
        (1, "default_rng", True),
        (2, "default_rng", False),
        (3, "laplace", False),
    ]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_is_short_and_named_for_its_job(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem not in {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_only_what_exists(page: Path) -> None:
    """Relative links lead somewhere, and every `make` target that is named is one."""
    text = page.read_text()
    links = re.findall(r"(?:\]\(|src=\")([^)\s\"#]+)", text)
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)`", text)) <= targets


def test_the_page_of_core_lists_what_is_in_it() -> None:
    inside = (path for path in (ROOT / "core").iterdir() if path.name[0] not in "_.")
    there = {path.name + "/" * path.is_dir() for path in inside}
    listed = re.findall(r"^\| `(\S+)` \|", (ROOT / "core" / "README.md").read_text(), re.M)
    assert set(listed) == there - {"README.md"}
    assert len(set(listed)) == len(listed)


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o100
    assert script.read_text().splitlines()[-2:] == ["make engines", "exec make --jobs 2 test test-engines"]


@pytest.mark.parametrize(("slow", "engine", "audit"), list(itertools.product((False, True), repeat=3)))
def test_every_test_is_run_by_one_target(slow: bool, engine: bool, audit: bool) -> None:
    """Whatever its markers, one pytest run of `make test`, `test-engines`, `test-slow` or `audit` has it."""
    targets = re.split(r"^(?=[a-z-]+:)", (ROOT / "Makefile").read_text(), flags=re.M)
    recipes = [text for text in targets if re.match("(test|test-engines|test-slow|audit):", text)]
    runs = re.findall(r"pytest -m \"?([a-z ]+)", "".join(recipes))
    assert len(runs) == 4
    markers = {"slow": slow, "engine": engine, "audit": audit}
    assert [bool(eval(run, {}, markers)) for run in runs].count(True) == 1


def test_tests_of_engines_are_where_the_makefile_looks() -> None:
    marked = {path for path in (ROOT / "tests").rglob("*.py") if "mark.engine" in path.read_text()}
    found = re.search(r'pytest -m "engine and not audit" (.+)', (ROOT / "Makefile").read_text())
    assert found
    folders = [ROOT / folder for folder in found[1].split()]
    assert {path for path in marked - {Path(__file__)} if path.parent not in folders} == set()


@pytest.mark.parametrize("pattern", [*SLOW, *AUDITS])
def test_what_is_called_slow_or_an_audit_exists(pattern: str) -> None:
    """A file or test that is renamed would else be fast again, unseen."""
    place, _, test = pattern.partition("::")
    found = list((ROOT / "tests").glob(place.removesuffix("*")))
    assert found
    name = test.partition("[")[0].rstrip("*")
    assert all(f"def {name}" in path.read_text() for path in found if test)
    is_called = is_audit if pattern in AUDITS else is_slow
    assert is_called(pattern.replace("*", "any text"))
    assert not is_called(f"{pattern.replace('*', 'any text')} more") or pattern.endswith("*")
