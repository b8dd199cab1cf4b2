"""What a prepared job makes of its input."""

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.job.job import check_job
from pipelines.run.run import prepare_run
from tests.pipelines.conftest import Bench
from tests.pipelines.jobs import changes


def test_a_function_gets_columns_of_one_type(bench: Bench) -> None:
    """Also where files have numbers of two types: see `test_files_that_differ_in_what_may_be_null`."""
    for kind in (pa.int32(), pa.float64()):
        rows = {"x": pa.array([1], kind), "y": [0.5]}
        pq.write_table(pa.table(rows), bench.rows.with_name(f"{kind}.parquet"))
    bench.rows.unlink()
    prepared = prepare_run(check_job(bench.changed(changes("sample_and_aggregate"))))
    assert prepared.splitting.mixed == prepared.source.mixed == (("x", pa.float64()),)
