"""The demo: several questions about the world's airports, with differential privacy."""

import json
import os
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import JobError
from pipelines.storage.local_folder import LocalFolder
from pipelines.storage.locate import absolute
from transforms.extras import needs

_JOB = """\
# Five questions about the world's airports, with one budget, in one run.
input: {{path: {points}}}
privacy: {{epsilon: 3.0, delta: 1.0e-6, neighbors: add_or_remove_one}}
questions:
  by_country:          # how many airports has each country? Those with too few are not named
    task: statistics
    columns: [lat]
    domain: {{lower: [-90], upper: [90], step: 0.01}}
    group_by: {{columns: [country], keys: private}}
    params: {{measures: [count]}}
    checks: 0
  latitudes:           # south of which latitudes are a tenth, a half and nine tenths of them?
    task: quantiles
    columns: [lat]
    domain: {{lower: [-90], upper: [90], step: 0.01}}
    params: {{probabilities: [0.1, 0.5, 0.9]}}
    checks: 0
  hot_spot:            # which is the smallest region with about 1,500 of them?
    task: one_cluster
    columns: [lat, lon]
    domain: {{geography: wgs84}}   # distances on the Earth, in metres
    params: {{target: 1500}}
    checks: 0
    share: 2
  centers:             # which eight places are near to all of them?
    task: k_means
    columns: [lat, lon]
    domain: {{geography: wgs84}}
    params: {{k: 8}}
    checks: 0
  cover:               # which three regions of about 1,500 each hold the most?
    task: k_cover
    columns: [lat, lon]
    domain: {{geography: wgs84}}
    params: {{k: 3, target: 1500}}
    checks: 0
    share: 3
output: {output}
"""


_POINTS, _RELEASES, _JOB_FILE = "airports.parquet", "releases", "job.yaml"


def write_demo(folder: str) -> str:
    """Write the airports as Parquet, and a job file for them, unless these files exist.

    Args:
        folder: created if missing. An existing folder may contain the files of an earlier demo and nothing
            else, so that the airports are never mixed with other input.

    Returns:
        Path of the job file.

    Raises:
        JobError: the folder is remote, cannot be written, or contains other files.
    """
    if "://" in folder:
        raise JobError(f"--out is {folder}: give a local folder.")
    folder = absolute(folder or ".")
    output = os.path.join(folder, _RELEASES, "{run_id}")
    points = json.dumps(os.path.join(folder, _POINTS))
    files = {
        _POINTS: _airports(),
        _JOB_FILE: _JOB.format(points=points, output=json.dumps(output)).encode(),
    }
    try:
        foreign = _find_foreign(folder, files)
        if foreign is None:
            for name, data in files.items():
                LocalFolder(folder).create(name, data)
            return os.path.join(folder, _JOB_FILE)
    except OSError as error:
        raise JobError(f"--out is {folder}: {os.strerror(error.errno or 0)}; give a new folder.") from None
    raise JobError(
        f"--out is {folder}, which holds {foreign}, a file that the demo did not write: give a new folder."
    )


def _airports() -> bytes:
    with needs("demo", "The demo"):
        import airportsdata
    airports = pa.Table.from_pylist([dict(airport) for airport in airportsdata.load().values()])
    sink = pa.BufferOutputStream()
    table = airports.select(["icao", "name", "country", "lat", "lon"])
    pq.write_table(table, sink, row_group_size=8192)
    return bytes(sink.getvalue().to_pybytes())


def _find_foreign(folder: str, files: Mapping[str, bytes]) -> str | None:
    """Return the name of something in `folder` that the demo did not write, or None."""
    if not os.path.lexists(folder):
        return None
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name == _RELEASES:
                own = entry.is_dir(follow_symlinks=False)
            else:
                own = entry.name in files and entry.is_file(follow_symlinks=False)
                own = own and LocalFolder(folder).read(entry.name) == files[entry.name]
            if not own:
                return ascii(entry.name)
    return None
