"""A job of a few rows and some rounds: what an engine takes for it is what rounds cost, whatever their rows.

Arguments of `main` are ROWS.parquet, ROUNDS and options of Beam. A job without rounds is the smallest that
Beam can run in Python: one element, and one step that handles it.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from core.domain import Grid
from core.noise import Noise
from core.rounds import Block
from core.secure_noise import SecureNoise
from pipelines.console.exit import exit_after
from pipelines.run.runners import CachedOptions, open_pipeline
from transforms.open_source import open_source
from transforms.read_blocks import ReadBlocks, Reader
from transforms.run_rounds import RunRounds

GRID = Grid((0.0,), (1.0,), 2.0**-10)


@dataclass(frozen=True)
class CountRows:
    """A round that counts rows, and so costs nothing of its own."""

    name: str
    purpose: str = "a count of the rows"
    floor: int | None = None

    def summarize(self, block: Block, state: int) -> int:
        return len(block.ids)

    def release(self, aggregate: int, state: int, noise: Noise) -> int:
        return aggregate


def run(rows: str, rounds: int, options: Sequence[str]) -> None:
    """Run `rounds` rounds on the column x of a Parquet file; with none, a job of one element."""
    with open_pipeline(CachedOptions(list(options))) as pipeline:
        if not rounds:
            _ = pipeline | beam.Create([0]) | beam.Map(str)
            return
        source = open_source(rows, ["x"])
        steps = [CountRows(f"round {number}") for number in range(rounds)]
        descriptors = pipeline | ReadBlocks(source)
        last = descriptors | RunRounds(steps, 0, SecureNoise(), Reader.of(source, GRID))
        _ = last | beam.Map(str)


def main() -> None:
    """Run what the command line names; workers find the classes of this module by its name."""
    exit_after(lambda: run(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
