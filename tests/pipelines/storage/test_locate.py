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


@pytest.mark.parametrize(
    "path",
    [
        "az://c/x.parquet?sv=2024&se=2026&sig=sEcret%3D",
        "s3://b/x?X-Amz-Credential=sEcret&X-Amz-Date=1",
        "s3://b/x?AWSAccessKeyId=sEcret",
        "gs://b/x/*.parquet?X-Goog-Signature=sEcret",
        "az://c/x?access_token=sEcret",
    ],
)
def test_signed_urls_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(JobError, match=r"has a \? and a token, .* credentials in the environment") as refused:
        absolute(path)
    assert "sEcret" not in str(refused.value)


def test_a_url_of_another_scheme_is_not_shown_where_it_may_have_credentials() -> None:
    """Hadoop's names of Azure have an @, too, and are not supported."""
    with pytest.raises(JobError, match=r"begins with abfss://, which is not supported\. .* az://") as refused:
        absolute("abfss://rows@account/x")
    assert "account" not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    ["s3://bucket/a@b:c", "abfss://b/x", "gs://bucket/x", "/data/me@home", "gs://b/day=2026-??/x?.parquet"],
)
def test_other_signs_are_part_of_names(path: str) -> None:
    assert absolute(path) == path


@pytest.mark.parametrize("path", ["rows\ud800.parquet", "/data/\ud800/x"])
def test_a_path_that_the_locale_cannot_encode_is_one_sentence(path: str) -> None:
    """Under a locale of few characters, such as C without UTF-8 mode, that is every path with others."""
    with pytest.raises(
        JobError, match=r"'.*\\ud800.*' has characters that no file name has in this locale: set"
    ):
        absolute(path)
    assert absolute("/data/\udcff") == "/data/\udcff"  # a byte of a name that is no UTF-8
