"""The demo: where the world's airports are densest, found without telling of any one of them."""

import json
import os

import airportsdata
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.local_folder import LocalFolder

_JOB = """\
# The smallest region that holds about 1,500 of the world's airports.
task: one_cluster
input:
  path: {points}
  columns: [lat, lon]
domain: {{lower: [-90, -180], upper: [90, 180], step: 0.01}}   # degrees, as if the earth were flat
privacy: {{epsilon: 1.0, delta: 1.0e-6, neighbors: add_or_remove_one}}
params: {{target: 1500}}
output: {output}
"""


def write_demo(folder: str) -> str:
    """Write the airports as Parquet, and a job about them, where they are not there yet.

    Args:
        folder: made where it doesn't exist.

    Returns:
        Path of the job file.
    """
    folder = os.path.abspath(os.path.expanduser(folder))
    place, points = LocalFolder(folder), os.path.join(folder, "airports.parquet")
    if not os.path.exists(points):
        airports = pa.Table.from_pylist([dict(airport) for airport in airportsdata.load().values()])
        sink = pa.BufferOutputStream()
        table = airports.select(["icao", "name", "country", "lat", "lon"])
        pq.write_table(table, sink, row_group_size=8192)
        place.create("airports.parquet", sink.getvalue().to_pybytes())
    output = os.path.join(folder, "releases", "{run_id}")
    place.create("job.yaml", _JOB.format(points=json.dumps(points), output=json.dumps(output)).encode())
    return place.locate("job.yaml")
