"""The demo writes into a folder of its own, and never into anybody's input."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.demo import write_demo
from pipelines.errors import JobError
from pipelines.job.job import load_job
from pipelines.job.questions import QuestionsJob
from tests.transforms.tables import write


def refusal(out: Path | str) -> str:
    with pytest.raises(JobError) as caught:
        write_demo(str(out))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    return str(caught.value)


def test_it_may_be_written_again(tmp_path: Path) -> None:
    jobs = [load_job(write_demo(str(tmp_path / "new" / "demo"))) for _ in range(2)]
    assert jobs[0] == jobs[1]
    (tmp_path / "new/demo/releases/x").mkdir(parents=True)
    assert load_job(write_demo(str(tmp_path / "new" / "demo"))) == jobs[0]


def test_its_questions_share_the_budget_that_the_job_says(tmp_path: Path) -> None:
    job = load_job(write_demo(str(tmp_path / "demo")))
    privacy = job.privacy
    assert (privacy.epsilon, privacy.delta, privacy.neighbors) == (3.0, 1e-6, "add_or_remove_one")
    assert isinstance(job, QuestionsJob)
    assert len(job.jobs) == 5 and {asked.checks for asked in job.jobs.values()} == {0}


@pytest.mark.parametrize("name", ["releases", "job.yaml"])
def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    """It may lead to files of somebody else, whatever they hold."""
    demo, elsewhere = tmp_path / "demo", tmp_path / "elsewhere"
    write_demo(str(demo))
    (demo / "releases").mkdir()
    (demo / name).rename(elsewhere)
    (demo / name).symlink_to(elsewhere)
    assert f"holds '{name}'" in refusal(demo)
    (tmp_path / "nowhere").symlink_to(tmp_path / "new")
    assert "No such file or directory" in refusal(tmp_path / "nowhere")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["rows.parquet", ".hidden", "airports.parquet", "job.yaml", "releases"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, lat=[1.0], lon=[1.0])
    before = (tmp_path / name).read_bytes()
    assert f"holds '{name}', a file that the demo did not write: give a new folder" in refusal(tmp_path)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("name", ["job.yaml", "airports.parquet"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert f"holds '{name}'" in refusal(tmp_path)


def test_places_that_cannot_be_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "Not a directory" in refusal(tmp_path / "file")
    assert "Not a directory" in refusal(tmp_path / "file" / "below")
    assert "give a local folder" in refusal("gs://bucket/demo")
    assert "NUL" in refusal("a\0b")
    assert "File name too long" in refusal(tmp_path / ("a" * 300))
    assert (tmp_path / "file").read_text() == "mine"


def test_the_command_refuses_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_text("mine")
    said = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr.startswith("shoal: --out is ") and said.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["rows.parquet"]
