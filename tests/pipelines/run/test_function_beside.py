"""A function in a file beside the job: its text travels with the job, and its hash with the release."""

import errno
import hashlib
import json
import re

import pyarrow as pa
import pytest

import shoal
from pipelines.errors import JobError
from pipelines.job.function_file import carry_function
from pipelines.job.job import check_job, load_job
from pipelines.storage import local_folder
from tests.pipelines.jobs import changes
from transforms.run_function import FunctionError, FunctionRunner
from transforms.split_units import stream

CODE = """\
from dataclasses import dataclass


@dataclass
class Answer:
    value: float


def mean(rows, shift=0.0):
    \"\"\"A class of the file's own must find its module.\"\"\"
    return Answer(float(rows.column(0).to_numpy().mean())).value + shift
"""


@pytest.fixture
def beside(bench):
    """Put the function and a job that names it into the folder of the bench."""
    job = changes("sample_and_aggregate")
    (bench.folder / "means.py").write_text(CODE)
    return {**job, "params": {**job["params"], "function": "means.py:mean"}}


def load(bench, beside, **params):
    changed = bench.changed({**beside, "params": {**beside["params"], **params}})
    return load_job(bench.write(changed))


def test_a_job_carries_the_text_and_shows_the_hash(bench, beside, monkeypatch):
    monkeypatch.chdir("/")  # a relative path begins at the folder of the job, wherever the command is
    job = load(bench, beside)
    function = job.task_params.untrusted()
    assert (function.place, function.text) == ("means.py:mean", CODE)
    shown = job.model_dump(mode="json")["params"]
    assert shown["code"] == f"sha256:{hashlib.sha256(CODE.encode()).hexdigest()}"
    assert CODE not in json.dumps(shown)
    (bench.folder / "means.py").unlink()  # what has been read needs no file
    with FunctionRunner(function) as runner:
        answer = runner.run(stream(pa.record_batch({"x": [0.25, 0.75]})))
        assert answer.tolist() == [1536]  # 0.5, in steps of 2^-10 from -1 on


def test_other_code_makes_another_job(bench, beside):
    before = load(bench, beside)
    assert load(bench, beside).hash() == before.hash()
    (bench.folder / "means.py").write_text(CODE + "# more\n")
    after = load(bench, beside)
    assert after.hash() != before.hash()
    assert after.run_id != before.run_id


def test_a_run_and_its_release(bench, beside, refused):
    ran = bench.run({**beside, "run_id": "one"})
    assert ran.exit_code == 0, ran.output
    params = bench.release()["params"]
    assert params["function"] == "means.py:mean"
    assert params["code"] == f"sha256:{hashlib.sha256(CODE.encode()).hexdigest()}"
    assert "dataclass" not in (bench.folder / "out" / "release.json").read_text()
    (bench.folder / "means.py").write_text(CODE + "# more\n")
    again = bench.run({**beside, "run_id": "one"})
    assert again.exit_code == 2 and "Traceback" not in again.stderr  # its release is another job's
    checked = bench.shoal("check-function", bench.write(bench.changed(beside)))
    assert "uniform rows" in checked.stdout


def test_from_python_a_path_begins_at_the_working_directory(bench, beside, monkeypatch):
    monkeypatch.chdir(bench.folder)
    assert not shoal.plan(bench.changed(beside)).refusals
    monkeypatch.chdir("/")
    with pytest.raises(
        shoal.ShoalError, match=r"params.function names the file /means.py, which does not exist"
    ):
        shoal.plan(bench.changed(beside))


@pytest.mark.parametrize(
    ("text", "function", "says"),
    [
        ("def f(:\n", "means.py:f", r"means.py, which is not valid Python in line 1"),
        ("\0", "means.py:f", r"means.py, which (cannot be read: give|is not valid Python\.)"),
        (b"\xff", "means.py:f", r"means.py, which cannot be read: give a file of Python in UTF-8"),
        (b"#" * 1_000_001, "means.py:f", r"which has 1,000,001 bytes: it may have at most 1,000,000"),
        (CODE, "none.py:mean", r"none.py, which does not exist"),
        (CODE, "means.py:not a name", r"it must be FILE.py:name, or module:name"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(bench, beside, refused, text, function, says):
    (bench.folder / "means.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    said = refused(bench.run({**beside, "params": {**beside["params"], "function": function}}))
    assert re.search(says, said), said


def test_a_file_that_the_system_denies_is_told_with_its_reason(bench, beside, monkeypatch):
    def denied(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.chdir(bench.folder)
    monkeypatch.setattr(local_folder, "_at_once", denied)
    with pytest.raises(JobError, match=r"means.py cannot be read \(Permission denied\): let this account"):
        shoal.plan(bench.changed(beside))


@pytest.mark.parametrize("name", ["missing", "__doc__"])
def test_what_is_no_function_is_told_before_a_row_is_read(bench, beside, name):
    function = load(bench, beside, function=f"means.py:{name}").task_params.untrusted()
    with pytest.raises(FunctionError, match=f"means.py:{name}, but that cannot be imported"):
        FunctionRunner(function)


def test_code_belongs_to_a_file(bench, beside):
    params = {**beside["params"], "code": CODE}
    inline = check_job(bench.changed({**beside, "params": params}))
    assert inline.task_params.untrusted().text == CODE
    module = {**params, "function": "shoal.analyses.regression:linear"}
    with pytest.raises(JobError, match=r"params.code is given, but params.function is shoal.analyses"):
        check_job(bench.changed({**beside, "params": module}))
    with pytest.raises(JobError, match=r"params.code is missing"):
        check_job(bench.changed(beside))


def test_the_text_that_a_job_has_is_not_replaced_and_a_home_is_a_place(tmp_path, monkeypatch):
    """A job that was written with its text is the same wherever it is read."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "f.py").write_text("beside = 1\n")
    (home / "f.py").write_text("at_home = 1\n")
    found = []
    for params in (
        {"function": "f.py:f", "code": "own = 1\n"},
        {"function": "f.py:f"},
        {"function": "~/f.py:f"},
    ):
        raw = {"params": params}
        carry_function(raw, str(tmp_path))
        found.append(raw["params"]["code"])
    assert found == ["own = 1\n", "beside = 1\n", "at_home = 1\n"]
