"""Ledgers whose file somebody changed: no charge may give budget back, or be there twice."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import JobError
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from tests.pipelines.ledger.test_ledger import Books

IMPOSSIBLE = (-0.5, math.inf, math.nan, 1e6)


@pytest.fixture
def charged(bench) -> Path:
    """The file of a ledger with two charges."""
    path = bench.folder / "ledger.json"
    create_ledger(str(path), Ledger(epsilon=2.5, delta=1e-5))
    books = Books(bench, str(path))
    books.charge("monday")
    books.charge("tuesday")
    return path


def spoil(path: Path, charge: dict[str, Any], **changes: Any) -> None:
    """Write a ledger with other values in its last charge, as JSON that Python reads."""
    ledger = json.loads(path.read_text())
    ledger["charges"][-1] |= charge
    path.write_text(json.dumps({**ledger, **changes}))


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize("place", ["epsilon", "delta", 0, 1, 2])
def test_no_charge_gives_budget_back(charged, place, value):
    """A cost below 0 would, and so would one whose sum with others is no number."""
    draw = [0.1, 0.0, 0.1]
    if isinstance(place, int):
        draw[place] = value
    spoil(charged, {"draws": [draw]} if isinstance(place, int) else {place: value})
    with pytest.raises(JobError, match="is not a ledger of schema 1"):
        read_ledger(str(charged))


def test_a_charge_is_of_a_budget(charged):
    for field, value in {"epsilon": 0, "delta": 1}.items():
        spoil(charged, {"epsilon": 0.1, "delta": 0} | {field: value})
        with pytest.raises(JobError, match=rf", as charges\[1\]\.{field} has a value that is not allowed: "):
            read_ledger(str(charged))


WHY_NONE = {
    "": "it is empty, cut off or not JSON",
    '{"schema": 1': "it is empty, cut off or not JSON",
    "[]": "it is not a mapping",
    '{"schema": 2, "epsilon": 1, "delta": 0}': "its schema is that of another version of Shoal",
    '{"delta": 0}': "epsilon is missing",
    '{"epsilon": "Ann", "delta": 0}': "epsilon has a value that is not allowed",
    '{"epsilon": 1, "delta": 0, "Ann": 1}': "it has a key that this version of Shoal does not know",
    '{"epsilon": 1, "delta": 0, "unit": ""}': "unit has a value that is not allowed",
    '{"epsilon": 1, "delta": 0, "epsilon": 2}': "it has a mapping with one key twice",
    '{"epsilon": 1, "delta": 0, "charges": [5]}': r"charges\[0\] has a value that is not allowed",
}


@pytest.mark.parametrize(("text", "why"), WHY_NONE.items(), ids=WHY_NONE.values())
def test_what_is_no_ledger_says_why_and_what_helps(charged, text, why):
    """What was a ledger is restored: whoever makes a new one in its place forgets what was spent."""
    charged.write_text(text)
    with pytest.raises(JobError, match=f"is not a ledger of schema 1, as {why}: .* restore it") as caught:
        read_ledger(str(charged))
    assert "Ann" not in str(caught.value)  # a file that is something else may have rows


def test_a_run_is_in_a_ledger_once(charged):
    assert len(read_ledger(str(charged)).charges) == 2
    spoil(charged, {"run_id": "monday"})
    with pytest.raises(JobError, match="is not a ledger of schema 1"):
        read_ledger(str(charged))


@pytest.mark.parametrize("changes", [{"epsilon": 0}, {"delta": 1}, {"order": 1}, {"unit": ""}, {"count": ""}])
def test_a_ledger_of_no_promise_is_none(charged, changes):
    spoil(charged, {}, **changes)
    with pytest.raises(JobError, match="is not a ledger of schema 1"):
        read_ledger(str(charged))


def test_a_charge_with_one_key_twice_is_refused(charged):
    """JSON keeps the last value of a key, so a small epsilon after the true one would hide what is spent."""
    text = charged.read_text()
    assert text.count('"epsilon"') == 3
    place = text.rindex('"epsilon"')
    end = text.index(",", place) + 1
    charged.write_text(f'{text[:end]} "epsilon": 0.001,{text[end:]}')
    with pytest.raises(JobError, match=r"it has a mapping with one key twice: .* restore it"):
        read_ledger(str(charged))
