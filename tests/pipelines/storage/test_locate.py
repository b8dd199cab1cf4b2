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


def test_a_url_of_another_scheme_is_not_shown_where_it_may_have_credentials() -> None:
    """Hadoop's names of Azure have an @, too, and are not supported."""
    with pytest.raises(JobError, match=r"begins with abfss://, which is not supported\. .* az://") as refused:
        absolute("abfss://rows@account/x")
    assert "account" not in str(refused.value)


@pytest.mark.parametrize("path", ["s3://bucket/a@b:c", "abfss://b/x", "gs://bucket/x", "/data/me@home"])
def test_other_signs_are_part_of_names(path: str) -> None:
    assert absolute(path) == path
