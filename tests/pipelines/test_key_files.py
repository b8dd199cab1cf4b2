"""Which files of public keys a job names."""

from pathlib import Path

import pytest

from pipelines.errors import JobError
from pipelines.job.job import check_job, check_several
from pipelines.key_files import check_public, key_files
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes


@pytest.mark.parametrize("keys", ["private", "/lists/cities.parquet", ["a", "b"]])
def test_a_file_of_keys_is_known_by_its_field(bench: Bench, keys: str | list[str]) -> None:
    job = bench.changed({**changes("statistics"), "group_by": {"columns": ["city"], "keys": keys}})
    files = {"group_by.keys": keys} if keys == "/lists/cities.parquet" else {}
    assert key_files(check_job(job)) == files
    own = {key: job.pop(key) for key in ("task", "domain", "params", "group_by")}
    own["columns"] = job["input"].pop("columns")
    job["input"].pop("checks")
    several = check_several({**job, "questions": {"one": own, "two": {**own, "group_by": None}}})
    assert key_files(several) == {f"questions.one.{field}": file for field, file in files.items()}


def test_a_file_of_keys_is_at_an_absolute_path(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.folder)
    job = bench.changed({**changes("histogram"), "group_by": {"columns": ["city"], "keys": "k.parquet"}})
    assert key_files(check_job(job)) == {"group_by.keys": str(Path(bench.folder) / "k.parquet")}


def test_a_file_that_is_gone_is_no_file_of_keys_and_hides_none(bench: Bench) -> None:
    keys, link, gone = (Path(bench.folder) / name for name in ("k.parquet", "link.parquet", "gone.parquet"))
    keys.touch()
    link.hardlink_to(keys)
    job = check_job(
        bench.changed({**changes("histogram"), "group_by": {"columns": ["city"], "keys": str(keys)}})
    )
    check_public(job, [gone])
    with pytest.raises(JobError, match=r"group_by\.keys"):
        check_public(job, [gone, link])
