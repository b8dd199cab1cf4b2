"""A 1-cluster job of two million rows, to be run on any engine and compared with memory, bit for bit."""

import dataclasses
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.plan import Plan
from core.rounds import run_in_memory
from pipelines.console.exit import exit_after
from pipelines.run.runners import open_pipeline
from tests.core.seeded import SeededNoise
from tests.engines.golden import Recorded, Trace
from tests.engines.services import PYTHON_WORKER
from tests.transforms.tables import write
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, read_in_memory
from transforms.run_rounds import RunRounds

GRID = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-16)
NOISE = SeededNoise(7)
"""The same in every round: a worker gets it anew, as it was pickled, and so must the twin."""


@dataclass(frozen=True)
class ClusterJob:
    """Rows and the rounds of a 1-cluster on them.

    Args:
        source: the rows, in several files of several row groups.
        plan: the rounds.
    """

    source: Source
    plan: Plan

    @classmethod
    def make(cls, folder: Path, rows: int, files: int = 4, row_groups: int = 8) -> "ClusterJob":
        """Write `rows` rows in `folder`: one in ten in a small ball, the others everywhere."""
        rng = np.random.default_rng(3)
        for number in range(files):
            n = rows // files
            xy = rng.uniform(size=(2, n))
            xy[:, : n // 10] = rng.normal([[0.3], [0.7]], 0.003, size=(2, n // 10))
            rng.shuffle(xy, axis=1)
            write(folder / f"part-{number}.parquet", -(-n // row_groups), x=xy[0], y=xy[1])
        params = OneCluster(target=rows // 12)
        neighbors = Neighbors("add_or_remove_one")
        plan = ONE_CLUSTER.plan(GRID, params, Budget(1.0, 1e-9), neighbors, b"a salt of 16 byt")
        return cls(open_source(str(folder), ["x", "y"]), plan)

    @property
    def rounds(self) -> list[Recorded]:
        """The rounds, which keep their aggregates in the state."""
        return [Recorded(step) for step in self.plan.rounds]

    def run_in_memory(self) -> Trace:
        """Return what every engine must give."""
        state = Trace((), self.plan.start)
        for step in self.rounds:
            noise = pickle.loads(pickle.dumps(NOISE))
            state = run_in_memory([step], read_in_memory(self.source, GRID), state, noise)
        return state

    def run_in_beam(self, output: Path, options: Sequence[str]) -> None:
        """Run on the engine that `options` name, and keep the last state in the folder `output`."""
        with open_pipeline(PipelineOptions(list(options))) as pipeline:
            descriptors = pipeline | ReadBlocks(self.source)
            start = Trace((), self.plan.start)
            last = descriptors | RunRounds(self.rounds, start, NOISE, Reader.of(self.source, GRID))
            _ = last | "Keep" >> beam.Map(_keep, output)


class Runnable(Protocol):
    """A job that can be pickled."""

    def run_in_beam(self, output: Path, options: Sequence[str]) -> None:
        """Run on the engine that `options` name, and keep the last states in the folder `output`."""


class Submission:
    """A process of its own that runs a job, as `shoal run` would be.

    Args:
        job: what to run.
        output: a folder to make.
        options: of Beam.
    """

    def __init__(self, job: Runnable, output: Path, options: Sequence[str]) -> None:
        output.mkdir()
        self._output = output
        (output / "job").write_bytes(pickle.dumps(job))
        main = f"from {__name__} import submit; submit()"
        with (output / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", main, str(output), *options], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, env=os.environ | PYTHON_WORKER,
            )  # fmt: skip

    def stop(self) -> None:
        """End the process, if it has not ended."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> list[Any]:
        """Return what was kept, once for every time that a worker did so."""
        code = self._process.wait()
        assert code == 0, (self._output / "log").read_text()[-5000:]
        return [pickle.loads(file.read_bytes()) for file in sorted(self._output.glob("*.pickle"))]


def submit() -> None:
    """Run the job that `Submission` left."""
    output = Path(sys.argv[1])
    job = pickle.loads((output / "job").read_bytes())
    exit_after(lambda: job.run_in_beam(output, sys.argv[2:]))


def _keep(state: object, output: Path) -> None:
    made = output / f"{uuid.uuid4().hex}.partial"
    made.write_bytes(pickle.dumps(state))
    os.replace(made, made.with_suffix(".pickle"))


def assert_equal(got: Trace, expected: Trace) -> None:
    """Check that the aggregates of every round, and the last state, are the same bit for bit."""
    assert len(got.aggregates) == len(expected.aggregates)
    for ours, theirs in zip(got.aggregates, expected.aggregates, strict=True):
        assert type(ours) is type(theirs)
        assert ours == theirs
    assert pickle.dumps(dataclasses.astuple(got.state)) == pickle.dumps(dataclasses.astuple(expected.state))
