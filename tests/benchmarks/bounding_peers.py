"""Peers of bounding units: each keeps one row of every unit, in one thread.

DuckDB is asked for any row of each unit, and for the one with the least hash, as Shoal is. PipelineDP bounds
contributions on its local backend, to one value in the one partition, with an object for each row, which is
not timed. They are asked for runs, and write the least processor seconds of each way. Rows have `unit`, `x`
and `y`.
"""

from tests.benchmarks.peer_process import Peer

_LEAST = """
import json, sys, time

def least(run, runs):
    times = []
    for _ in range(runs):
        began = time.process_time()
        kept = run()
        times.append(time.process_time() - began)
    return {"seconds": min(times), "kept": kept}

folder = sys.argv[1]
asked = json.load(open(folder + "/asked.json"))
"""

DUCKDB = Peer(
    "duckdb",
    ("duckdb==2.0.1", "pyarrow"),
    _LEAST
    + """
import duckdb

duckdb.execute("set threads = 1")
rows = "from read_parquet('" + folder + "/rows.parquet') group by unit"
kept = ("any_value(x), any_value(y)", "arg_min({'x': x, 'y': y}, hash(x, y))")

def run(kept):
    duckdb.execute("create or replace temp table kept as select unit, " + kept + " " + rows)
    return duckdb.execute("select count(*) from kept").fetchone()[0]

json.dump([least(lambda: run(each), asked["runs"]) for each in kept], open(folder + "/runs.json", "w"))
""",
)

BOUNDING = Peer(
    "pipelinedp",
    ("pipeline-dp==0.3.1", "pyarrow", "apache-beam"),
    _LEAST
    + """
import pipeline_dp
import pyarrow.parquet as pq
from pipeline_dp import contribution_bounders

rows = pq.read_table(folder + "/rows.parquet").to_pydict()
data = list(zip(rows["unit"], [0] * len(rows["unit"]), zip(rows["x"], rows["y"])))
params = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT], max_partitions_contributed=1, max_contributions_per_partition=1)
bounder = contribution_bounders.SamplingCrossAndPerPartitionContributionBounder()

def run():
    report = pipeline_dp.report_generator.ReportGenerator(params, "bound", False)
    local = pipeline_dp.LocalBackend()
    kept = bounder.bound_contributions(data, params, local, report, lambda values: values)
    return sum(1 for _ in kept)

json.dump([least(run, asked["runs"])], open(folder + "/runs.json", "w"))
""",
)
