"""Distinct values of sorted ones."""

import numpy as np
import pytest
from numpy.typing import NDArray

from core import distinct as module
from core.distinct import distinct, distinct_in_place


@pytest.mark.parametrize("most", [1, 3, 40, 10_000])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 500])
def test_distinct_values_are_those_of_a_set(monkeypatch: pytest.MonkeyPatch, most: int, size: int) -> None:
    """Also where a value is at the end of one part and at the beginning of the next."""
    monkeypatch.setattr(module, "_PART", 4)
    values: NDArray[np.int64] = np.sort(np.random.default_rng(size).integers(0, most, size))
    expected = sorted(set(values.tolist()))
    assert distinct(values).tolist() == expected
    assert distinct_in_place(values.copy()).tolist() == expected


def test_few_distinct_values_do_not_hold_the_memory_of_all() -> None:
    found = distinct_in_place(np.zeros(1000, dtype=np.int64))
    assert found.tolist() == [0] and found.base is None
