"""Rows of timestamps give the aggregates of their steps, bit for bit, in threads and in processes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from core.domain import Grid
from core.rounds import run_in_memory
from core.times import Times
from tests.engines.golden import GRID, NOISELESS, Trace, recorded
from tests.engines.test_golden_embedded import MODES, PROCESSES, assert_equal, in_beam, source_of
from tests.transforms.tables import write
from transforms.open_source import open_source
from transforms.read_blocks import read_in_memory

LOW, HIGH = "1969-12-31T23:59:00Z", "1970-01-01T00:16:04Z"
TIMES = Times.of([LOW] * 2, [HIGH] * 2, "1 second")
DATED = Grid((0, 0), GRID.extents, 1, times=TIMES)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as numbers, and as timestamps that are up to half a second beside their steps."""
    folder, rng = tmp_path_factory.mktemp("dates"), np.random.default_rng(11)
    for number, n in enumerate((7000, 0, 1, 5000)):
        steps = np.clip(np.rint(rng.normal([[400], [600]], 100, size=(2, n))), -9, 1033).astype(np.int64)
        missing, size = np.arange(n) % 50 == 7, max(1, n // 20)
        x, y = steps / 1024
        write(folder / "numbers" / f"{number}.parquet", size, x=np.where(missing, np.nan, x), y=y)
        beside = rng.integers(-499_999_999, 500_000_000, size=(2, n))
        instants = [
            pa.array(each, pa.int64(), mask=mask).cast(pa.timestamp("ns", "Europe/Berlin"))
            for each, mask in zip((steps - 60) * 10**9 + beside, (missing, None), strict=True)
        ]
        write(folder / "dates" / f"{number}.parquet", size, x=instants[0], y=instants[1])
    return folder


def in_memory(data: Path, task: str) -> Trace:
    rounds, start = recorded(task)
    return run_in_memory(rounds, read_in_memory(source_of(data / "numbers"), GRID), start, NOISELESS)


@pytest.mark.parametrize("task, mode", [("every_kind", "processes"), ("one_cluster", "threads")])
def test_dates_on_the_embedded_runner(data: Path, tmp_path: Path, task: str, mode: str) -> None:
    source = open_source(str(data / "dates"), ["x", "y"], times=TIMES)
    options = PROCESSES if mode == "processes" else MODES["two_threads"]
    got = in_beam(source, task, tmp_path / "state", DATED, **options)
    assert_equal(got, in_memory(data, task))
