"""PipelineDP as a peer: on its local backend, or on Beam's in-process runner, with an object for each row.

It is asked for metrics (`MEDIAN` is its 50th percentile), noise, epsilon, delta, groups, rows, low, high,
public (keys, or None), runs, least and seconds (after so many of the processor, and the least number of runs,
no run begins), and beam: whether to run on Beam. Rows have `unit`, `key` and `value`. A run is its processor
seconds, and the metrics of each released key. The budget is split by its naive accountant.
"""

from tests.benchmarks.peer_process import Peer

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
while len(runs) < asked["runs"] and (
        len(runs) < asked["least"] or sum(r["seconds"] for r in runs) < asked["seconds"]):
    started = time.process_time()
    if asked["beam"]:
        groups = dict(on_beam())
    else:
        found = aggregate(data, pipeline_dp.LocalBackend())
        groups = {str(key): [float(getattr(m, name)) for name in names] for key, m in found}
    runs.append({"seconds": time.process_time() - started, "groups": groups})
json.dump(runs, open(folder + "/runs.json", "w"))
"""

PIPELINEDP = Peer("pipelinedp", ("pipeline-dp==0.3.1", "pyarrow", "apache-beam"), _SCRIPT)
