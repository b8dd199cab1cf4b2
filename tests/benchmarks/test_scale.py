"""Every task is measured, and what grows faster than it may is named."""

import sys

import pytest

from pipelines.run.usage import Usage
from pipelines.tasks import TASKS
from tests.benchmarks import scale

CASE = "interior_point"


@pytest.mark.parametrize(
    ("processor", "megabytes", "wrong"),
    [
        (11.2, 439, ""),
        (11.3, 439, f"{CASE} has a slope of 1.05"),
        (11.2, 440, f"memory of {CASE} grows by 10.0%"),
        (0.1, 1001, f"{CASE} takes 1001 MB\nmemory of {CASE} grows by 150.2%"),
    ],
)
def test_what_grows_too_fast_is_named(
    processor: float, megabytes: int, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {10: Usage(1.0, 1.0, 400 << 20, 0, 0, ""), 100: Usage(processor, 1.0, megabytes << 20, 0, 0, "")}
    monkeypatch.setattr(scale, "measure_all", lambda *_: {(CASE, size): run for size, run in runs.items()})
    monkeypatch.setattr(sys, "argv", ["scale", "--only", CASE, "--sizes", "10", "100", "--check"])
    if not wrong:
        scale.main()
        return
    with pytest.raises(SystemExit) as ended:
        scale.main()
    assert ended.value.code == wrong


def test_every_task_has_a_case() -> None:
    assert {case.job(1_000_000).get("task") for case in scale.CASES.values()} >= set(TASKS)
