"""Run PipelineDP live, in an environment of its own, on the rows that Shoal's statistics get.

It wants older packages than Shoal, so it is installed into `.engines/pipelinedp`, once, and rows and results
travel as files. It runs on its local backend, or on Beam's in-process runner, with one Python object for each
row.
"""

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

VERSION = "0.3.1"
HOME = Path(__file__).parents[2] / ".engines" / "pipelinedp"
_PACKAGES = (f"pipeline-dp=={VERSION}", "pyarrow", "apache-beam")
_SCRIPT = """
import json, sys, time
import pipeline_dp
import pyarrow.parquet as pq

folder = sys.argv[1]
asked = json.load(open(folder + "/asked.json"))
rows = pq.read_table(folder + "/rows.parquet").to_pydict()
data = list(zip(rows["unit"], rows["key"], rows["value"]))
median = pipeline_dp.Metrics.PERCENTILE(50)
metrics = [median if name == "MEDIAN" else getattr(pipeline_dp.Metrics, name) for name in asked["metrics"]]
names = ["percentile_50" if name == "MEDIAN" else name.lower() for name in asked["metrics"]]
kinds = {"laplace": pipeline_dp.NoiseKind.LAPLACE, "gaussian": pipeline_dp.NoiseKind.GAUSSIAN}

def aggregate(rows, backend):
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=asked["epsilon"], total_delta=asked["delta"])
    engine = pipeline_dp.DPEngine(budget, backend)
    params = pipeline_dp.AggregateParams(
        metrics=metrics, noise_kind=kinds[asked["noise"]], max_partitions_contributed=asked["groups"],
        max_contributions_per_partition=asked["rows"], min_value=asked["low"], max_value=asked["high"])
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1],
        value_extractor=lambda r: r[2])
    found = engine.aggregate(rows, params, extractors, asked["public"])
    budget.compute_budgets()
    return found

def on_beam():
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    with open(folder + "/found", "wb"), beam.Pipeline(runner=FnApiRunner()) as pipeline:
        found = aggregate(pipeline | beam.Create(data), pipeline_dp.BeamBackend())
        found | beam.Map(keep, folder + "/found", names)
    with open(folder + "/found") as file:
        return [json.loads(line) for line in file]

def keep(found, path, names):
    key, metrics = found
    with open(path, "a") as file:
        file.write(json.dumps([str(key), [float(getattr(metrics, name)) for name in names]]) + "\\n")

runs = []
for _ in range(asked["runs"]):
    started = time.process_time()
    if asked["beam"]:
        groups = dict(on_beam())
    else:
        found = aggregate(data, pipeline_dp.LocalBackend())
        groups = {str(key): [float(getattr(m, name)) for name in names] for key, m in found}
    runs.append({"seconds": time.process_time() - started, "groups": groups})
json.dump(runs, open(folder + "/runs.json", "w"))
"""


class NotThere(Exception):
    """PipelineDP cannot be installed here."""


def _python() -> Path:
    python = HOME / "bin" / "python"
    if not python.exists():
        venv.create(HOME, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", *_PACKAGES], check=False)
        if done.returncode:
            raise NotThere(f"PipelineDP {VERSION} cannot be installed.")
    return python


def aggregate(
    rows: Mapping[str, Sequence[Any]], asked: Mapping[str, Any], python: Path | None = None
) -> list[dict[str, Any]]:
    """Return for each run its processor seconds and the metrics of each released key.

    Args:
        rows: columns `unit`, `key` and `value`.
        asked: metrics (`MEDIAN` is its 50th percentile), noise, epsilon, delta, groups, rows, low, high,
            public (keys, or None), runs, and beam: whether to run on Beam's in-process runner.
        python: of an environment that has PipelineDP; None installs it.
    """
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table(dict(rows)), f"{folder}/rows.parquet")
        Path(folder, "asked.json").write_text(json.dumps(asked))
        run = [str(python or _python()), "-c", _SCRIPT, folder]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            raise NotThere("PipelineDP failed.")
        found: list[dict[str, Any]] = json.loads(Path(folder, "runs.json").read_text())
        return found
