"""The embedded runner gives the same aggregates as memory, however the data is cut, ordered or spread."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from core.aggregate import Counts
from core.domain import Grid
from core.one_cluster.found import Found
from core.rounds import Round, run_in_memory
from tests.engines.golden import GRID, NOISELESS, OTHERS, TASKS, Trace, recorded
from tests.transforms.tables import write_points
from transforms.embedded_runner import EmbeddedRunner
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, read_in_memory
from transforms.read_once import ReadOnce, read_once
from transforms.records import OneQuestion
from transforms.run_rounds import RunRounds

ROWS = [9000, 0, 1, 6000]

MODES = {
    "one_thread": {"direct_num_workers": 1, "direct_running_mode": "in_memory"},
    "two_threads": {"direct_num_workers": 2, "direct_running_mode": "multi_threading"},
}
PROCESSES = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    for row_groups in (1, 3, 64):
        write_points(folder / str(row_groups), ROWS, row_groups)
    write_points(folder / "empty", [0], 1)
    return folder


def source_of(folder: Path) -> Source:
    return open_source(str(folder), ["x", "y"])


@cache
def in_memory(folder: Path, task: str) -> Trace:
    rounds, start = recorded(task)
    return run_in_memory(rounds, read_in_memory(source_of(folder), GRID), start, NOISELESS)


def reader_of(source: Source, grid: Grid, rounds: Sequence[Round]) -> ReadOnce:
    """Return the reader of a run, which reads each row group once where one process runs all steps."""
    return read_once(OneQuestion(Reader.of(source, grid)), [rounds], [grid])


def in_beam(source: Source, task: str, output: Path, grid: Grid = GRID, **options: object) -> Trace:
    rounds, start = recorded(task)

    def keep(state: object) -> None:  # fails if a second element arrives
        with output.open("xb") as file:
            pickle.dump(state, file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=PipelineOptions([], **options)) as pipeline:
        last = (
            pipeline
            | ReadBlocks(source)
            | RunRounds(rounds, start, NOISELESS, reader_of(source, grid, rounds))
        )
        last | "Save" >> beam.Map(keep)
    return pickle.loads(output.read_bytes())


def assert_equal(got: Trace, expected: Trace) -> None:
    assert len(got.aggregates) == len(expected.aggregates)
    for ours, theirs in zip(got.aggregates, expected.aggregates, strict=True):
        assert type(ours) is type(theirs)
        assert ours == theirs
    assert repr(got.state) == repr(expected.state)  # the states hold small arrays


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row_groups", [1, 64])
def test_threads(data: Path, tmp_path: Path, row_groups: int, mode: str, task: str) -> None:
    got = in_beam(source_of(data / str(row_groups)), task, tmp_path / "state", **MODES[mode])
    assert_equal(got, in_memory(data / "1", task))


@pytest.mark.parametrize("task", OTHERS)
def test_other_tasks_of_an_empty_table(data: Path, tmp_path: Path, task: str) -> None:
    """Of rows, `tests.engines.test_every_task` has them."""
    empty = in_beam(source_of(data / "empty"), task, tmp_path / "empty", **MODES["one_thread"])
    assert_equal(empty, in_memory(data / "empty", task))


@pytest.mark.parametrize("task", TASKS)
def test_shuffled_files(data: Path, tmp_path: Path, task: str) -> None:
    source = source_of(data / "64")
    order = np.random.default_rng(1).permutation(len(source.files))
    source = replace(source, files=tuple(source.files[i] for i in order))
    assert_equal(in_beam(source, task, tmp_path / "state"), in_memory(data / "1", task))


@pytest.mark.parametrize("task", TASKS)
def test_repeated_bundles(data: Path, tmp_path: Path, task: str) -> None:
    expected = in_memory(data / "1", task)
    rounds, start = recorded(task)
    source = source_of(data / "3")
    options = PipelineOptions([], direct_runner_bundle_repeat=3)

    def append(state: object) -> None:
        with (tmp_path / "states").open("ab") as file:
            pickle.dump(state, file)

    with beam.Pipeline(runner=EmbeddedRunner(), options=options) as pipeline:
        last = (
            pipeline
            | ReadBlocks(source)
            | RunRounds(rounds, start, NOISELESS, reader_of(source, GRID, rounds))
        )
        last | "Save" >> beam.Map(append)
    with (tmp_path / "states").open("rb") as file:
        for _ in range(4):
            assert_equal(pickle.load(file), expected)


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_table(data: Path, tmp_path: Path, task: str) -> None:
    expected = in_memory(data / "empty", task)
    assert_equal(in_beam(source_of(data / "empty"), task, tmp_path / "state"), expected)


def test_the_golden_aggregates_are_not_trivial(data: Path) -> None:
    boxes, sample, rings = in_memory(data / "1", "every_kind").aggregates
    records = sum(ROWS) - 180 - 1 - 120  # one row in 50 is bad
    assert isinstance(boxes, Counts) and len(boxes.keys) > 100
    assert rings.totals.sum() == records
    assert np.count_nonzero(rings.totals) > 20
    assert abs(sample.totals[-1] - 0.3 * records) < 5 * np.sqrt(0.21 * records)
    clipped, _ = in_memory(data / "1", "all_below_the_floor").aggregates
    assert not len(clipped.keys)
    cluster = in_memory(data / "1", "one_cluster")
    assert len(cluster.aggregates) == 4
    assert isinstance(cluster.state, Found)
