"""The worked examples of docs/ work as they stand, in a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipelines.job.job import check_job, check_raw
from shoal.calls import read_job

ROOT = Path(__file__).resolve().parent.parent

JOB = """
task: {task}
input: {{path: rows.parquet, columns: [x]}}
domain: {{lower: [0], upper: [100], step: 0.01}}
privacy: {{epsilon: 1.0, delta: 0}}
params: {params}
output: out
"""

FUNCTION = """
task: sample_and_aggregate
input: {path: rows.parquet, columns: [x, y]}
params:
  function: corr:correlation
  arguments: {shift: 0.0}
  blocks: 100
  outputs: {lower: [-1], upper: [1], step: 0.001}
privacy: {epsilon: 1.0, delta: 1.0e-6}
output: out
"""


def follow(page: str, tree: Path) -> list[Path]:
    """Do in `tree` what a page says: write its new files, apply its diffs; return the new files.

    A diff that somebody who followed the page has applied already stays as it is.
    """
    text = (ROOT / "docs" / page).read_text()
    made = []
    for path, code in re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.M | re.S):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).with_name("__init__.py").touch()
        (tree / path).write_text(code)
        made.append(tree / path)
    for path, diff in re.findall(r"^```diff\n--- (\S+)\n(.*?)^```", text, re.M | re.S):
        old, new = (
            "".join(f"{x[1:]}\n" for x in diff.splitlines() if x[0] in marks) for marks in (" -", " +")
        )
        before = (tree / path).read_text()
        if new in before:
            continue
        assert before.count(old) == 1, f"{page} changes lines that {path} does not have once: mend its diff"
        (tree / path).write_text(before.replace(old, new))
    return made


PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    if path.name != "CHANGELOG.md"
)


def snippets(text: str) -> list[str]:
    """Return the YAML of a page: its fenced blocks, and each `key: ...` of an indented block or in a line."""
    fenced = re.findall(r"^( *)```yaml\n(.*?)^ *```", text, re.M | re.S)
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    keys = (
        r"(?:task|input|domain|privacy|params|output|questions|group_by|contributions|path|types|unit|where)"
    )
    indented = re.findall(rf"^ {{4,}}({keys}: .+)$", rest, re.M)
    in_a_line = [
        code for code in re.findall(r"`([^`\n]+)`", rest) if re.match(rf"{keys}: |\{{[a-z]+: ", code)
    ]
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for indent, code in fenced] + indented + in_a_line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_yaml_of_a_page_is_yaml(page: Path) -> None:
    """Also of single lines: between { and } a path with {run_id} must be quoted."""
    for code in snippets(page.read_text()):
        list(yaml.safe_load_all(code))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_whole_job_of_a_page_is_one(page: Path) -> None:
    """What a reader copies is accepted: all names, and values that go together."""
    for code in filter(lambda code: "..." not in code, snippets(page.read_text())):
        for part in re.split(r"^---$", code, flags=re.M):
            job = read_job(part) if ":" in part else {}
            if {"input", "privacy", "output"} <= job.keys():
                check_raw({"run_id": "checkins-2026-11-16", **job})


def test_a_path_with_braces_between_braces_is_found() -> None:
    (code,) = snippets("1. Give it:\n\n        input: {path: gs://a/{run_id}, columns: [x]}\n")
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(code)


def script_of_schedules(name: str) -> str:
    text = (ROOT / "docs" / "schedules.md").read_text()
    (script,) = [
        each for each in re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S) if f"/{name} " in each
    ]
    return str(script)


@pytest.mark.parametrize(
    ("codes", "ends", "tries"),
    [([0], 0, 1), ([1, 1, 0], 0, 3), ([2], 2, 1), ([1, 3], 3, 2), ([1] * 5, 1, 5), ([], 1, 0)],
    ids=["released", "released later", "wrong", "refused", "never", "no rows"],
)
def test_the_script_of_the_page_on_schedules_tries_what_may_succeed(
    tmp_path: Path, codes: list[int], ends: int, tries: int
) -> None:
    """With a `shoal` that ends with these exit codes; without one, the day has no _SUCCESS."""
    script = script_of_schedules("nightly.sh")
    shoal, calls = tmp_path / "shoal", tmp_path / "calls"
    shoal.write_text(f"""#!/bin/sh
echo "$@" >> {calls}
set -- {" ".join(map(str, codes))}
shift $(($(wc -l < {calls}) - 1))
exit $1
""")
    shoal.chmod(0o755)
    day = tmp_path / "checkins" / "day=2026-11-16"
    day.mkdir(parents=True)
    if codes:
        (day / "_SUCCESS").touch()
    script = script.replace("/opt/shoal/bin/shoal", str(shoal)).replace("/srv/data", str(tmp_path))
    ran = subprocess.run(
        ["bash", "-c", f"sleep() {{ :; }}\n{script}", "nightly.sh", "2026-11-16"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == ends, ran.stderr
    assert bool(ran.stderr) == bool(ends), "cron mails what is on standard error"
    called = calls.read_text().splitlines() if calls.exists() else []
    assert called == ["run /srv/jobs/checkins.yaml --set run_id=checkins-2026-11-16"] * tries


RESULT = {"outcome": "released", "result": {"lows": [1, 20], "highs": [2, 70]}}


@pytest.mark.skipif(shutil.which("jq") is None, reason="the script asks jq")
@pytest.mark.parametrize(
    ("release", "runs", "says"),
    [
        (RESULT, 14, []),
        (None, 14, ["there is no release"]),
        (RESULT | {"result": {"lows": [1, 20], "highs": [2, 71]}}, 14, ["an interval is wider than 50"]),
        (RESULT, 13, ["only 13 more runs fit into the ledger"]),
        (RESULT, None, ["only null more runs fit into the ledger"]),
    ],
    ids=["well", "late", "wide", "dear", "unknown"],
)
def test_the_script_that_watches_says_what_is_wrong(
    tmp_path: Path, release: object, runs: int | None, says: list[str]
) -> None:
    if release is not None:
        (tmp_path / "checkins-2026-11-16").mkdir()
        (tmp_path / "checkins-2026-11-16" / "release.json").write_text(json.dumps(release))
    shoal = tmp_path / "shoal"
    shoal.write_text(f"#!/bin/sh\necho '{json.dumps({'fits': {'runs': runs}})}'\n")
    shoal.chmod(0o755)
    script = script_of_schedules("watch.sh").replace("/opt/shoal/bin/shoal", str(shoal))
    asked = ["bash", "-c", script.replace("/srv/releases", str(tmp_path)), "watch.sh", "2026-11-16"]
    ran = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
    assert ran.stderr.splitlines() == [f"checkins-2026-11-16: {each}" for each in says]
    assert ran.returncode == bool(says)


def test_the_jobs_of_the_page_on_schedules_read_the_folders_it_says() -> None:
    text = (ROOT / "docs" / "schedules.md").read_text()
    job = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)[0])
    rows = re.findall(r"^\| every .* \| `'(.*?)'` \| `([a-z-]+)-\$", text, re.M)
    wanted = {
        "checkins": ("2026-11-16", "/srv/data/checkins/*/day=2026-11-16/*.parquet"),
        "checkins-weekly": ("2026-W47", "/srv/data/checkins/week=2026-W47/*/*.parquet"),
    }
    assert {name for _, name in rows} == set(wanted)
    for path, name in rows:
        date, reads = wanted[name]
        given = {**job, "run_id": f"{name}-{date}", "input": {**job["input"], "path": path}}
        assert check_job(given).input.path == reads
    assert check_job({**job, "run_id": "checkins-2026-11-16"}).output == "/srv/releases/checkins-2026-11-16"


@pytest.mark.parametrize("page", ["add-a-task.md", "add-a-method.md"])
def test_a_page_can_be_followed_in_a_tree_where_it_was_followed(tmp_path: Path, page: str) -> None:
    for folder in ("core", "pipelines", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    follow(page, tmp_path)
    files = {path: path.read_text() for path in tmp_path.rglob("*.py")}
    follow(page, tmp_path)
    assert files == {path: path.read_text() for path in tmp_path.rglob("*.py")}


def test_the_function_of_the_docs_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "functions.md").read_text()
    ((name, code),) = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.M | re.S)
    (tmp_path / name).write_text(code)
    (tmp_path / "job.yaml").write_text(FUNCTION)
    shoal = [sys.executable, "-c", "from pipelines.cli import main; main()", "check-function", "job.yaml"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    ran = subprocess.run(shoal, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "works on ordinary rows" in ran.stdout


def test_the_page_on_python_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code runs from top to bottom where `people` is a table."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "python.md").read_text(), re.M | re.S)
    assert len([line for line in blocks[0].splitlines() if line]) == 3
    rng = np.random.default_rng(1)
    people = {"age": rng.integers(20, 61, 5000), "person": np.arange(5000) // 2}
    names = {"people": pa.table(people), "X": rng.uniform(0, 100, (5000, 2))}
    monkeypatch.chdir(tmp_path)
    exec("".join(blocks), names)
    assert abs(names["release"].result["value"] - 40) <= 2
    assert list(tmp_path.iterdir()) == []


def test_the_page_on_choosing_can_be_followed() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "choosing.md").read_text(), re.M | re.S)
    job = {
        "task": "median",
        "input": {"columns": ["age"]},
        "domain": {"lower": [0], "upper": [120], "step": 1},
        "privacy": {"epsilon": 1.0, "delta": 0},
    }
    exec(code, {"job": job})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "task", "params", "method"),
    [
        ("add-a-task.md", "mean", "{}", "noisy_sum"),
        ("add-a-method.md", "quantiles", "{probabilities: [0.1, 0.5, 0.9], method: alone}", "alone"),
    ],
    ids=["a task", "a method"],
)
def test_a_worked_example_runs(tmp_path: Path, page: str, task: str, params: str, method: str) -> None:
    for folder in ("core", "transforms", "pipelines", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    made = follow(page, tmp_path)
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", *made], cwd=tmp_path, check=True)
    subprocess.run([*ruff, "format", "--check", *made], cwd=tmp_path, check=True)

    values = np.random.default_rng(1).normal(40, 10, 5000)
    pq.write_table(pa.table({"x": values}), tmp_path / "rows.parquet")
    (tmp_path / "job.yaml").write_text(JOB.format(task=task, params=params))
    shoal = [sys.executable, "-c", "from pipelines.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("PYTHONSAFEPATH", None)
    ran = subprocess.run(
        [*shoal, "run", "job.yaml"],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    release = json.loads((tmp_path / "out" / "release.json").read_text())
    assert (release["task"], release["method"], release["outcome"]) == (task, method, "released")
    assert release["privacy"]["spent"] <= 1
