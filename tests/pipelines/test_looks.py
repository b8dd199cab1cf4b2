"""A plan says all reasons for which a run would be refused, and is the same plan."""

from typing import Any

import pytest

from pipelines import looks
from pipelines.errors import JobError
from pipelines.job.job import check_raw
from pipelines.looks import look_at_plan
from tests.pipelines.every_plan import changed_job
from tests.pipelines.jobs import changes


def test_no_refusal_hides_another_or_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    job = check_raw(changed_job(changes("median")))
    plan, _, none = look_at_plan(job)
    assert none == []
    for name in ("check_left", "check_function", "check_temporary"):

        def refuse(*_: Any, why: str = name) -> None:
            raise JobError(f"{why} refuses.")

        monkeypatch.setattr(looks, name, refuse)
    monkeypatch.setattr(looks, "look_at_ledger", lambda *_: {"ledger": "full"})
    again, _, refusals = look_at_plan(job)
    assert refusals == ["check_left refuses.", "check_function refuses.", "check_temporary refuses."]
    assert again == {**plan, "ledger": "full"}  # what is left is told, too
