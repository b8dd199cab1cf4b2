"""URLs with credentials are not shown, at whatever place of a job they are."""

import pytest

PLACES = ["input.path", "input.join.path", "output", "privacy.ledger", "group_by.keys"]
URLS = ["user:s3cret@host/a", "user:s3c/s3cret@host/a", "host/a.parquet?sig=s3cret", "user:s3cret%40host/a"]


@pytest.mark.parametrize("key", PLACES)
def test_a_refused_url_with_credentials_is_not_shown(bench, key):
    for url in URLS:
        ran = bench.run({}, "--set", f"{key}=https://{url}")
        assert ran.exit_code == 2 and "begins with https://, which is not supported" in ran.stderr
        assert "s3cret" not in ran.output


@pytest.mark.parametrize("key", ["privacy.policy", "output.path", "params.target"])
def test_a_url_at_a_place_for_something_else_is_not_shown(bench, refused, key):
    assert "s3cret" not in refused(bench.run({}, "--set", f"{key}=s3://key:s3cret@bucket/a"))
