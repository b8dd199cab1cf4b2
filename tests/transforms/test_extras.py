"""Where the packages of an extra are missing, one sentence says which extra to install."""

import sys
from collections.abc import Callable

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.demo import write_demo
from pipelines.run.reach_runner import check_credentials
from pipelines.storage.locate import open_folder
from transforms.extras import MissingExtra
from transforms.list_files import filesystem


def dataflow() -> None:
    check_credentials(PipelineOptions(["--runner=DataflowRunner"]))


@pytest.mark.parametrize(
    ("missing", "call", "told"),
    [
        ("google.cloud.storage", lambda: open_folder("gs://b/f"), "gs://b/f: gs:// needs packages"),
        ("google.auth", lambda: filesystem("gs://b/f"), "input.path: gs:// needs packages"),
        ("obstore", lambda: open_folder("s3://b/f"), "s3://b/f: s3:// needs packages"),
        ("obstore", lambda: open_folder("az://b/f"), "az://b/f: az:// needs packages"),
        ("obstore", lambda: filesystem("s3://b/f"), "input.path: s3:// needs packages"),
        ("obstore", lambda: filesystem("az://b/f"), "input.path: az:// needs packages"),
        ("google.auth", dataflow, "--runner is DataflowRunner, which needs packages"),
        ("google.cloud.dataflow", dataflow, "--runner is DataflowRunner, which needs packages"),
        ("airportsdata", lambda: write_demo("demo-out"), "The demo needs packages"),
    ],
)
def test_a_missing_package_is_one_sentence(
    missing: str, call: Callable[[], object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    importers = (
        "pipelines.storage.google_folder",
        "pipelines.storage.store_folder",
        "transforms.object_store",
    )
    for name in (missing, *importers):
        monkeypatch.setitem(sys.modules, name, None)
    extra = {"airportsdata": "demo", "obstore": "azure" if "az://" in told else "s3"}.get(missing, "gcp")
    with pytest.raises(MissingExtra) as error:
        call()
    assert str(error.value) == f"{told} that are not installed here: install shoal[{extra}]."
