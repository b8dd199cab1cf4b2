"""Key columns of a table of groups."""

import numpy as np
import pytest

from core.grouping import Grouping, key_columns


@pytest.mark.parametrize("keys", [(0, 2**64 - 1), (2**64 - 1, 0), (5, -(2**63)), (2**63 - 1,), (2**63,)])
def test_integers_stay_integers(keys):
    grouping = Grouping(("k",), None, (None,))
    column = key_columns([f"[{key}]" for key in keys], grouping)["k"]
    assert column.dtype == (np.uint64 if max(keys) >= 2**63 else np.int64)
    assert column.tolist() == list(keys)
