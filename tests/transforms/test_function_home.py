"""What libraries leave in folders for temporary files is in the home of a block, which ends with it."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from transforms.run_function import Function, FunctionRunner
from transforms.split_units import stream

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of functions are Linux's")

CODE = """
import os, tempfile

def is_home(rows):
    home = os.path.realpath(os.environ["HOME"])
    return float({os.path.realpath(each) for each in (tempfile.gettempdir(), joblib_folder())} == {home})

def joblib_folder():
    from joblib._memmapping_reducer import _get_temp_dir
    return os.path.dirname(_get_temp_dir("arrays")[0])
"""


@pytest.mark.parametrize("isolation", ["process", "sandbox"])
def test_temporary_files_are_at_home(isolation: str) -> None:
    """Also the arrays that joblib hands to processes, for which it would take /dev/shm."""
    function = Function("f.py:is_home", Grid((0.0,), (1.0,), 1.0), text=CODE, seconds=20, isolation=isolation)
    rows = stream(pa.record_batch({"x": np.array([1.0])}))
    with FunctionRunner(function) as runner:
        found = runner.run(rows)
    assert found is not None
    assert found.tolist() == [1]
