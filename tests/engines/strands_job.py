"""Every task on one engine: alone, by group, and beside questions about dates or places.

All are run by the same pipeline, to save an engine's time, and are compared with memory, aggregate for
aggregate. What is asked of a group is compared with what is asked of a folder that has its rows alone.
"""

import os
import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions

from core.each_group import in_one_pass
from core.rounds import Block, Strand, run_in_memory
from pipelines.job.job import check_job, check_several
from pipelines.run.joint_run import prepare_questions, read_records
from pipelines.run.run import open_pipeline, prepare_run, read_groups
from tests.engines.golden import GRID, OTHERS, TASKS, Fixed, Recorded, Trace, recorded
from tests.pipelines.jobs import FITTED, GROUPED, changes
from tests.transforms.tables import write
from transforms.open_source import Source, open_source
from transforms.read_blocks import ReadBlocks, Reader, list_row_groups
from transforms.records import RecordsOfQuestions
from transforms.run_rounds import RunStrands

KEYS = ("a", "b", "nowhere")
NOISE = Fixed(0, factor=0.0)
_START = np.datetime64("2013-01-01", "s")
_DAYS = {"lower": ["2013-01-01T00:00:00"], "upper": ["2013-12-31T00:00:00"], "step": "1 hour"}
_UNIT = {"lower": [0], "upper": [1], "step": 2.0**-12}
_FINE = {**_UNIT, "step": 2.0**-30}  # so that values wait in sections
_PLANE = {"lower": [0, 0], "upper": [1, 1], "step": 2.0**-12}
_EARTH = {"geography": "wgs84", "step": 100}
_FIJI = {**_EARTH, "lower": [-22, 175], "upper": [-12, -175]}
_CITIES = {"columns": ["city"], "keys": list(KEYS)}
_QUESTIONS: dict[str, dict[str, Any]] = {
    "by_city": {
        "task": "statistics",
        "columns": ["x"],
        "domain": _UNIT,
        "params": {"measures": ["count", "mean", {"quantiles": [0.5]}]},
        "group_by": {"columns": ["city"], "keys": "private"},
    },
    "when": {"task": "quantiles", "columns": ["t"], "domain": _DAYS, "params": {"probabilities": [0.2, 0.7]}},
    "spot": {"task": "one_cluster", "columns": ["x", "y"], "domain": _PLANE, "params": {"target": 900}},
    "table": {
        "task": "histogram",
        "columns": ["x", "y"],
        "domain": _PLANE,
        "params": {"cells": [60, 60], "method": "sparse"},
    },
    "place": {"task": "one_cluster", "columns": ["lat", "lon"], "domain": _EARTH, "params": {"target": 900}},
    "places": {"task": "k_means", "columns": ["lat", "lon"], "domain": _FIJI, "params": {"k": 3}},
}


@dataclass(frozen=True)
class Shared:
    """The same records for every strand."""

    reader: Reader

    def blocks_of(self, element: Any, due: Sequence[int]) -> Iterator[tuple[int, Block]]:
        """See `transforms.records.RecordsOfQuestions`."""
        for block in self.reader.blocks(element):
            for strand in due:
                yield strand, block


@dataclass(frozen=True)
class Side:
    """Strands that run side by side.

    Args:
        source: what is read.
        strands: with rounds that keep their aggregates in the state.
        records: how elements become the records of the strands.
        alone: for each strand the file or folder, and the reader, of a run of its own.
    """

    source: Source
    strands: tuple[Strand, ...]
    records: RecordsOfQuestions
    alone: tuple[tuple[Source, Reader], ...]

    def run_in_memory(self) -> list[Trace]:
        """Return what every engine must give."""
        found = []
        for strand, (source, reader) in zip(self.strands, self.alone, strict=True):
            blocks: list[Block] = []
            for file in source.files:
                blocks += [block for part in list_row_groups(file) for block in reader.blocks(part)]
            found.append(run_in_memory(strand.rounds, blocks, strand.start, NOISE))
        return found


@dataclass(frozen=True)
class StrandsJob:
    """Sides by name: `tasks`, `grouped`, `groups` and `questions`."""

    sides: Mapping[str, Side]

    @classmethod
    def make(cls, folder: Path, rows: int) -> "StrandsJob":
        """Write rows with a place, a city and a time, and of each city a folder of its own."""
        rng = np.random.default_rng(5)
        for number in range(4):
            n = rows // 4
            xy = rng.uniform(size=(2, n))
            xy[:, : n // 2] = rng.normal([[0.3], [0.7]], 0.003, size=(2, n // 2))
            city = np.array(["a", "b", "c", None], dtype=object)[rng.choice(4, n, p=[0.4, 0.4, 0.15, 0.05])]
            seconds = _START + rng.integers(-86400, 366 * 86400, n)
            columns = {"x": np.where(rng.random(n) < 0.01, np.nan, xy[0]), "y": xy[1], "t": seconds}
            columns |= {"lat": xy[1] - 17, "lon": np.where(xy[0] > 0.3, xy[0] - 180.3, xy[0] + 179.7)}
            for of in (None, *KEYS):
                mine = np.full(n, True) if of is None else city == of
                table = {name: pa.array(values[mine]) for name, values in columns.items()}
                table["city"] = pa.array(city[mine], pa.string())
                write(folder / (of or "all") / f"part-{number}.parquet", -(-n // 8), **table)
        return cls(
            {
                "tasks": _tasks(folder),
                "grouped": _grouped(folder),
                "groups": _groups(folder),
                "questions": _questions(folder),
            }
        )

    def run_in_memory(self) -> dict[str, list[Trace]]:
        """Return what every engine must give."""
        return {name: side.run_in_memory() for name, side in self.sides.items()}

    def run_in_beam(self, output: Path, options: Sequence[str]) -> None:
        """Run on the engine that `options` name, and keep the last states in the folder `output`."""
        with open_pipeline(PipelineOptions(list(options))) as pipeline:
            for name, side in self.sides.items():
                elements = pipeline | f"Read {name}" >> ReadBlocks(side.source)
                last = elements | f"Run {name}" >> RunStrands(side.strands, NOISE, side.records, 3)
                _ = last | f"Keep {name}" >> beam.Map(_keep, name, output)


def _tasks(folder: Path) -> Side:
    """Every kind of rounds in `tests.engines.golden`."""
    source = open_source(str(folder / "all"), ["x", "y"])
    reader = Reader.of(source, GRID)
    strands = tuple(Strand(*recorded(task)) for task in TASKS | OTHERS)
    return Side(source, strands, Shared(reader), ((source, reader),) * len(strands))


def _grouped(folder: Path) -> Side:
    """Every task that can be asked about each group, as questions of one job."""
    questions: dict[str, dict[str, Any]] = {}
    for task in GROUPED:
        given = changes(task)
        one = "input.columns" in given
        questions[task] = {
            "task": task,
            "columns": ["x"] if one else ["x", "y"],
            "domain": _FINE if task == "quantiles" else _UNIT if one else _PLANE,
            "params": FITTED.get(task, given.get("params")),
            "group_by": _CITIES,
        }
    job = check_several(_common(folder) | {"questions": questions, "input": {"path": str(folder / "all")}})
    prepared = prepare_questions(job, "FnApiRunner", [], None)  # type: ignore[arg-type]
    source = next(iter(prepared.sources.values()))
    _, records = read_records(prepared, beam.Pipeline() | ReadBlocks(source))
    strands = tuple(map(_recorded, prepared.strands))
    alone = []
    for (name, its), strands_of_it in zip(job.jobs.items(), prepared.questions, strict=True):
        if in_one_pass(strands_of_it):
            together = Reader.of(prepared.sources[name], its.grid, its.checks > 0)
            alone.append((prepared.sources[name], replace(together, apart=True)))
            continue
        for key in KEYS:
            only = open_source(str(folder / key), its.input.columns)
            alone.append((only, Reader.of(only, its.grid, its.checks > 0)))
    return Side(source, strands, records, tuple(alone))


def _groups(folder: Path) -> Side:
    about = {"task": "one_cluster", "params": {"target": 700}, "group_by": _CITIES}
    job: Any = check_job(_common(folder) | about | _input(folder, ["x", "y"]) | {"domain": _PLANE})
    prepared = prepare_run(job)
    _, records = read_groups(prepared, beam.Pipeline() | ReadBlocks(prepared.source))
    (strand, *_) = map(_recorded, prepared.strands)
    alone = [open_source(str(folder / key), ["x", "y"]) for key in KEYS]
    readers = [Reader.of(source, job.grid, checked=True) for source in alone]
    return Side(prepared.source, (strand,) * len(KEYS), records, tuple(zip(alone, readers, strict=True)))


def _questions(folder: Path) -> Side:
    job = check_several(_common(folder) | {"questions": _QUESTIONS, "input": {"path": str(folder / "all")}})
    prepared = prepare_questions(job, "FnApiRunner", [], None)  # type: ignore[arg-type]
    _, records = read_records(prepared, beam.Pipeline() | ReadBlocks(next(iter(prepared.sources.values()))))
    strands = tuple(map(_recorded, prepared.strands))
    sources = list(prepared.sources.values())
    readers = [
        Reader.of(s, its.grid, its.checks > 0) for s, its in zip(sources, job.jobs.values(), strict=True)
    ]
    return Side(sources[0], strands, records, tuple(zip(sources, readers, strict=True)))


def _common(folder: Path) -> dict[str, Any]:
    return {"privacy": {"epsilon": 8.0, "delta": 1e-5}, "output": str(folder / "out")}


def _input(folder: Path, columns: list[str]) -> dict[str, Any]:
    return {"input": {"path": str(folder / "all"), "columns": columns, "checks": 0.1}}


def _recorded(strand: Strand) -> Strand:
    return Strand(tuple(map(Recorded, strand.rounds)), Trace((), strand.start))


def _keep(last: tuple[int, object], name: str, output: Path) -> None:
    made = output / f"{uuid.uuid4().hex}.partial"
    made.write_bytes(pickle.dumps((name, *last)))
    os.replace(made, made.with_suffix(".pickle"))


def assert_equal(got: Sequence[tuple[str, int, Trace]], expected: Mapping[str, Sequence[Trace]]) -> None:
    """Check that each strand has the aggregates and the state of memory; one may be kept several times."""
    assert {(name, number) for name, number, _ in got} == {
        (name, number) for name, traces in expected.items() for number in range(len(traces))
    }
    for name, number, trace in got:
        wanted = expected[name][number]
        assert len(trace.aggregates) == len(wanted.aggregates) > 0
        for ours, theirs in zip(trace.aggregates, wanted.aggregates, strict=True):
            assert repr(ours) == repr(theirs)
        assert repr(trace.state) == repr(wanted.state)
