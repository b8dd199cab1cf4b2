"""How a store is opened, by the variables of the environment alone; no server is asked."""

import os
from datetime import timedelta
from typing import Any

import pytest

from tests.transforms.test_object_store import answered
from transforms import object_store
from transforms.object_store import StoreError, azure_settings, explained, open_store

Asked = list[tuple[str, int]]
KEYS = {
    "s3://": {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
    "az://": {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_KEY": "a2V5"},
}
WHO: list[tuple[str, dict[str, str]]] = [
    *KEYS.items(),
    ("az://", {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=a2V5"}),
    ("az://", {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;SharedAccessSignature=sv=1&sig=x"}),
    ("az://", {"AZURE_STORAGE_CONNECTION_STRING": "usedevelopmentstorage=TRUE;UseDevelopmentStorage=True"}),
    ("az://", {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"}),
    ("s3://", {"AWS_SKIP_SIGNATURE": "true"}),
]
"""Variables that say who asks, each in a way of its own."""


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return where a role was looked for. No machine has one, and no variable is set."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "AZURITE_")) or name.endswith("IDENTITY_ENDPOINT"):
            monkeypatch.delenv(name)
    found: Asked = []

    def connect(address: tuple[str, int], timeout: float) -> None:
        assert timeout <= 5
        found.append(address)
        raise OSError

    monkeypatch.setattr(object_store.socket, "create_connection", connect)
    return found


def opened(scheme: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return open_store.__wrapped__(f"{scheme}bucket")


@pytest.mark.parametrize(("scheme", "environment"), WHO)
def test_no_role_is_looked_for_where_it_is_said_who_asks(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, scheme: str, environment: dict[str, str]
) -> None:
    store = opened(scheme, environment, monkeypatch)
    assert not asked
    assert "bucket" in (store.config.get("bucket"), store.config.get("container_name"))
    # a store that is busy for a minute ends no run, and one that never answers ends it in minutes
    assert (
        store.retry_config["retry_timeout"] == timedelta(minutes=2) and store.retry_config["max_retries"] > 9
    )
    assert store.client_options["timeout"] == "5m"


@pytest.mark.parametrize("scheme", KEYS)
def test_without_credentials_a_machine_without_a_role_is_one_sentence(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with pytest.raises(StoreError, match="needs credentials, but none were found: set A") as refused:
        opened(scheme, {"AZURE_STORAGE_ACCOUNT": "a", "AWS_SECRET_ACCESS_KEY": "b"}, monkeypatch)
    assert refused.value.ours and asked == [("169.254.169.254", 80)]


@pytest.mark.parametrize(
    ("scheme", "endpoint"),
    [
        ("s3://", "AWS_ENDPOINT_URL_S3"),
        ("s3://", "AWS_ENDPOINT_URL"),
        ("s3://", "AWS_ENDPOINT"),
        ("az://", "AZURE_STORAGE_ENDPOINT"),
        ("az://", "AZURE_ENDPOINT"),
    ],
)
def test_only_an_endpoint_that_is_given_without_tls_is_asked_without(
    monkeypatch: pytest.MonkeyPatch, scheme: str, endpoint: str
) -> None:
    for url, plain in (("http://here:1", "true"), ("https://here:1", "false")):
        store = opened(scheme, {**KEYS[scheme], endpoint: url}, monkeypatch)
        assert store.client_options["allow_http"] == plain
    monkeypatch.delenv(endpoint)
    assert opened(scheme, KEYS[scheme], monkeypatch).client_options["allow_http"] == "false"


def test_a_connection_string_says_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;EndpointSuffix=core.example"
    store = opened("az://", {"AZURE_STORAGE_CONNECTION_STRING": text}, monkeypatch)
    assert store.config["endpoint"] == "http://a.blob.core.example"
    assert store.client_options["allow_http"] == "true"
    both = {
        "AZURE_STORAGE_ACCOUNT": "b",
        "AZURE_STORAGE_KEY": "b2V5",
        "AZURE_STORAGE_CONNECTION_STRING": text,
    }
    assert azure_settings(both) == {
        "account_name": "a",
        "account_key": "a2V5",
        "endpoint": "http://a.blob.core.example",
    }


@pytest.mark.parametrize(
    ("text", "status", "says", "ours"),
    [
        ("<Code>ContainerNotFound</Code>", 404, "container c does not exist (404): create it, or", True),
        ("<Code>InvalidResourceName</Code>", 400, "container c has a name that is not allowed: give", True),
        ("<Code>InvalidToken</Code>", 403, "container c refuses the credentials (403)", True),
        ("<Code>PermanentRedirect</Code>", 301, "container c is in another region", True),
        ("MissingAccount", None, "container c needs credentials, but none were found: set AZURE", True),
        ("", 408, "container c did not respond (408)", False),
        ("", 500, "container c did not respond (500)", False),
    ],
)
def test_what_azure_answers_is_about_a_container(
    text: str, status: int | None, says: str, ours: bool
) -> None:
    with pytest.raises(StoreError) as told, explained("az://c/k"):
        raise answered(status, text) if status else object_store.BaseError(text)
    assert told.value.sentence.startswith(says) and told.value.ours == ours


def test_a_bucket_that_is_missing_is_no_missing_object() -> None:
    """obstore has one type of error for both."""
    with pytest.raises(StoreError, match="bucket b does not exist"), explained("s3://b/k"):
        raise FileNotFoundError("Server returned 404: <Code>NoSuchBucket</Code>")
    with pytest.raises(FileNotFoundError), explained("s3://b/k"):
        raise FileNotFoundError("Server returned 404: <Code>NoSuchKey</Code>")
