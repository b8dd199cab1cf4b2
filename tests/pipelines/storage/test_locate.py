"""Paths of a job, wherever it names one."""

import pytest

from pipelines.errors import JobError
from pipelines.storage.locate import absolute


@pytest.mark.parametrize(
    "path",
    ["s3://KEY:secret@bucket/x", "gs://me@bucket", "s3://KEY:secret/a:b@bucket/x", "az://a:b@c@d/x.parquet"],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(JobError, match=r"right after .*give them in the environment") as refused:
        absolute(path)
    said = str(refused.value)
    assert not [word for word in ("KEY", "secret", "me@", "a:b") if word in said]


@pytest.mark.parametrize("path", ["s3://bucket/a@b:c", "abfss://a@b/x", "gs://bucket/x", "/data/me@home"])
def test_other_signs_are_part_of_names(path: str) -> None:
    assert absolute(path) == path
