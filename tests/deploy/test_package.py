"""What pip installs is one package, which works beside other packages of the names of its folders."""

import ast
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.deploy.installed import INNER, Installed, build, install, make_environment
from tests.deploy.manifests import DEPLOY, ROOT
from tests.deploy.scripts import load_script
from tests.deploy.test_image import IMAGE, copied
from tests.mutants.runner import copy_tree

BACKEND = load_script(DEPLOY / "package" / "one_package.py")
SOURCES = sorted(path for folder in (*INNER, "shoal") for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from core import budget", "from shoal.core import budget"),
        ("from core.budget import (\n    Budget,\n)", "from shoal.core.budget import (\n    Budget,\n)"),
        ("import core.budget as b, os", "import shoal.core.budget as b, os"),
        ("x = 'é'; from pipelines.cli import app", "x = 'é'; from shoal.pipelines.cli import app"),
        ("def f():\n    from transforms import a", "def f():\n    from shoal.transforms import a"),
        ("from corel import x", None),
        ("from . import core", None),
        ("from shoal.analyses import rows", None),
        ('"""\nfrom core import budget\n"""\ncore = core.budget', None),
    ],
)
def test_import_statements_are_rewritten_and_nothing_else(source: str, expected: str | None) -> None:
    assert BACKEND.rewritten(source.encode()).decode() == (expected or source)


def test_a_statement_that_binds_a_package_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2: import core"):
        BACKEND.rewritten(b"import os\nimport core.budget")


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings of a module that are not docstrings."""
    nodes = list(ast.walk(tree))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node


def test_no_string_names_a_module() -> None:
    """It would name another one where Shoal is installed."""
    named = re.compile(rf"\b({'|'.join(INNER)})(\.\w|\.$|:|$)")
    found = {
        f"{path.relative_to(ROOT)}:{text.lineno}": text.value
        for path in SOURCES
        for text in texts(ast.parse(path.read_text()))
        if named.match(text.value)
    }
    assert found == {}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("package"))


@pytest.mark.slow
def test_one_package_is_installed(installed: Installed) -> None:
    """The same from the tree and from the sdist. Each module and each file of the report is in it."""
    names = sorted(zipfile.ZipFile(installed.wheel).namelist())
    assert names == sorted(zipfile.ZipFile(installed.other).namelist())
    assert {name.split("/")[0] for name in names} == {"shoal", "shoal-0.1.0.dist-info"}
    modules = {name.removeprefix("shoal/") for name in names if name.endswith(".py")}
    expected = {str(path.relative_to(ROOT)).removeprefix("shoal/") for path in SOURCES}
    assert modules == expected
    beside = [path for end in ("css", "html") for path in (ROOT / "pipelines" / "report").glob(f"*.{end}")]
    beside += (ROOT / "pipelines" / "answers").glob("countries-50m.*")
    assert {f"shoal/{path.relative_to(ROOT)}" for path in beside} <= set(names)
    top = zipfile.ZipFile(installed.wheel).read("shoal-0.1.0.dist-info/top_level.txt")
    assert top.decode().split() == ["shoal"]


@pytest.mark.slow
def test_the_image_gets_all_of_it(installed: Installed, tmp_path: Path) -> None:
    """What the Dockerfile copies is enough to build the same wheel."""
    tree = installed.folder / "tree"
    for name in copied(IMAGE):
        place = tmp_path / "tree" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (tree / name).is_dir() else shutil.copyfile)(tree / name, place)
    wheel = build("build_wheel", tmp_path / "tree", tmp_path / "made")
    assert sorted(zipfile.ZipFile(wheel).namelist()) == sorted(zipfile.ZipFile(installed.wheel).namelist())


EVERY_MODULE = """
import importlib, pkgutil, sys
import shoal
names = [found.name for found in pkgutil.walk_packages(shoal.__path__, "shoal.")]
for name in names:
    if name not in ("shoal.transforms.function_process", "shoal.__main__"):
        importlib.import_module(name)
assert len(names) > 300, names
assert not {"core", "transforms", "pipelines"} & set(sys.modules)
for name, module in sys.modules.items():
    if name.split(".")[0] == "shoal":
        assert "/environment/lib/" in module.__file__, module
"""


@pytest.mark.slow
def test_every_module_is_imported(installed: Installed) -> None:
    installed.run("python", "-c", EVERY_MODULE)


@pytest.mark.slow
def test_the_command_runs(installed: Installed) -> None:
    assert "center" in installed.run("shoal", "demo").stdout
    job = str(installed.project / "demo-out" / "job.yaml")
    assert "one_cluster" in installed.run("python", "-m", "shoal", "plan", job).stdout
    processes = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    ran = installed.run("shoal", "run", job, "--set", "run_id=two", "--", *processes)
    assert "center" in ran.stdout
    planned = json.loads(installed.run("shoal", "plan", job, "--json").stdout)
    assert planned["questions"]["hot_spot"]["task"] == "one_cluster"


CALLS = """
import pyarrow as pa
import shoal
job = {
    "task": "histogram", "input": {"columns": ["x"]}, "params": {"cells": [2]},
    "domain": {"lower": [0], "upper": [1], "step": 1}, "privacy": {"epsilon": 100.0, "delta": 0},
}
print(shoal.plan(job).values["method"])
release = shoal.run(job, pa.table({"x": [0, 1, 1]}))
print(release.table.column("count").to_pylist(), len(release._repr_html_()) > 1000)
"""


@pytest.mark.slow
def test_python_runs_a_job(installed: Installed) -> None:
    ran = installed.run("python", "-c", CALLS)
    assert (ran.stdout, ran.stderr) == ("dense\n[1, 2] True\n", "")


@pytest.mark.slow
def test_functions_run_and_cost_is_predicted(installed: Installed) -> None:
    """Both start processes of Python by themselves."""
    rows = np.random.default_rng(3).uniform(-1, 1, (3000, 2))
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), installed.project / "rows.parquet")
    job = {
        "task": "sample_and_aggregate",
        "input": {"path": "rows.parquet", "columns": ["x", "y"], "bounds": [[-1, 1], [-1, 1]]},
        "params": {
            "function": "shoal.analyses.regression:logistic",
            "blocks": 60,
            "outputs": {"lower": [-1], "upper": [1], "step": 0.01},
        },
        "privacy": {"epsilon": 8.0, "delta": 1e-6},
        "output": "function",
    }
    (installed.project / "function.yaml").write_text(yaml.safe_dump(job))
    assert "works" in installed.run("shoal", "check-function", "function.yaml").stdout
    installed.run("shoal", "run", "function.yaml")
    assert json.loads((installed.project / "function" / "release.json").read_text())["result"] is not None
    counted = {
        "task": "histogram",
        "input": {"path": "rows.parquet", "columns": ["x"]},
        "domain": {"lower": [-1], "upper": [1], "step": 0.01},
        "params": {"cells": [10]},
        "privacy": {"epsilon": 1.0, "delta": 0},
        "output": "counted",
    }
    (installed.project / "counted.yaml").write_text(yaml.safe_dump(counted))
    assert "1,000" in installed.run("shoal", "cost", "counted.yaml", "--rows", "1000").stdout


@pytest.mark.slow
def test_an_editable_install_has_the_tree_as_it_is(tmp_path: Path) -> None:
    copy_tree(ROOT, tmp_path / "tree")
    make_environment(tmp_path, build("build_editable", tmp_path / "tree", tmp_path / "editable"))
    beside = Installed(tmp_path, tmp_path, tmp_path)
    beside.project.mkdir()
    look = "import core, transforms, pipelines, shoal; print(core.__file__, shoal.__file__)"
    told = beside.run("python", "-c", look).stdout
    assert told.split() == [str(tmp_path / "tree" / name / "__init__.py") for name in ("core", "shoal")]
    assert "Usage" in beside.run("shoal", "--help").stdout
