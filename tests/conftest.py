"""Which tests are slow: `make test` leaves them out, and `make test-engines` runs them."""

from fnmatch import fnmatchcase

import pytest

SLOW = (
    "engines/*",
    "pipelines/test_hostile_files.py*",
)
"""Patterns of node ids below tests/. Together they keep `make test` to a few minutes of two cores."""


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        if any(fnmatchcase(place, pattern) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)
