"""Prepared rows give the aggregates of a file that was prepared beforehand, bit for bit.

In that file, rows that are left out have nulls, so that the others have the same places and thus the same
identities, on which samples depend.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.rounds import run_in_memory
from tests.engines.golden import GRID, NOISELESS, OTHERS, TASKS, Trace, recorded
from tests.engines.test_golden_embedded import MODES, PROCESSES, assert_equal, in_beam, source_of
from tests.transforms.tables import write
from transforms.join_table import open_join
from transforms.open_source import Source, open_source
from transforms.parse_expression import parse_expression
from transforms.preparation import Preparation
from transforms.read_blocks import read_in_memory


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw rows, rows that were prepared beforehand, and a public table."""
    folder, rng = tmp_path_factory.mktemp("prepared"), np.random.default_rng(11)
    for number, n in enumerate((7000, 0, 1, 5000)):
        x, y = rng.normal([[0.4], [0.6]], 0.1, size=(2, n))
        x[::50] = np.nan
        city, hour = rng.choice(["a", "b", "c", "d"], n), rng.integers(0, 24, n)
        when = pa.array(hour * 3_600_000_000 + 7, pa.timestamp("us"))
        size = max(1, n // 20)
        write(
            folder / "raw" / f"{number}.parquet",
            size,
            raw=4 * x,
            y=y,
            city=pa.array(city, pa.string()),
            when=when,
        )
        kept = np.isin(city, ["a", "c"]) & (hour < 18)
        write(folder / "made" / f"{number}.parquet", size, x=np.where(kept, x, np.nan), y=y)
    write(folder / "cities.parquet", city=["a", "b", "c"], big=[True, False, True])
    return folder


def prepared(data: Path) -> Source:
    join = open_join(str(data / "cities.parquet"), "city", None)
    derive = (("x", parse_expression("raw / 4")), ("hour", parse_expression("hour(when)")))
    preparation = Preparation(parse_expression("big and hour < 18"), derive, join)
    return open_source(str(data / "raw"), ["x", "y"], preparation=preparation)


def in_memory(data: Path, task: str) -> Trace:
    rounds, start = recorded(task)
    return run_in_memory(rounds, read_in_memory(source_of(data / "made"), GRID), start, NOISELESS)


def test_a_part_of_the_rows_is_left_out(data: Path) -> None:
    points = [block.points for block in read_in_memory(prepared(data), GRID)]
    assert 4000 < sum(map(len, points)) < 5000


@pytest.mark.parametrize("task", {**TASKS, **OTHERS})
def test_threads(data: Path, tmp_path: Path, task: str) -> None:
    got = in_beam(prepared(data), task, tmp_path / "state", **MODES["two_threads"])
    assert_equal(got, in_memory(data, task))


def test_processes(data: Path, tmp_path: Path) -> None:
    got = in_beam(prepared(data), "every_kind", tmp_path / "state", **PROCESSES)
    assert_equal(got, in_memory(data, "every_kind"))
