"""Runners and their options: names and labels, good defaults, and a job that Dataflow would take."""

import copy
import json
from unittest.mock import patch

import apache_beam as beam
import pytest
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import (
    DirectOptions,
    GoogleCloudOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.transforms import core, userstate
from apache_beam.transforms.userstate import CombiningValueStateSpec

from pipelines.errors import JobError
from pipelines.job.job import Job, check_job
from pipelines.run.delivery import Delivery
from pipelines.run.prepared import Prepared
from pipelines.run.run import build_pipeline, prepare_run
from pipelines.run.runners import EMBEDDED, make_options, open_pipeline
from pipelines.storage.local_folder import LocalFolder

TEN_MEGABYTES = 10 * 2**20
CLOUD = (
    "--project=project",
    "--region=us-central1",
    "--temp_location=gs://bucket/temp",
    "--staging_location=gs://bucket/staging",
    "--sdk_container_image=registry/shoal:1",
    "--no_auth",
)


def prepare_for_dataflow(job: Job) -> Prepared:
    """Return a job that Dataflow's runner builds, but does not send. The network is not used."""
    with patch("apache_beam.io.gcp.gcsio.GcsIO.is_soft_delete_enabled", return_value=False):
        prepared = prepare_run(job, "DataflowRunner", CLOUD)
    prepared.options.view_as(pipeline_options.TestOptions).dry_run = True
    return prepared


@pytest.fixture
def job(bench):
    return check_job(bench.changed({"run_id": "2026-11-20_Daily.1"}))


def test_every_runner_names_the_job_by_task_and_run(job):
    for runner in ("FnApiRunner", "FlinkRunner", "PrismRunner", "DataflowRunner"):
        options = make_options(runner, job, [])
        assert options.view_as(StandardOptions).runner == runner
        assert options.view_as(GoogleCloudOptions).job_name == "shoal-one-cluster-2026-11-20-daily-1"


def test_a_long_run_id_leaves_a_name_that_runners_take(bench):
    options = make_options("DataflowRunner", check_job(bench.changed({"run_id": "x" * 128})), [])
    cloud = options.view_as(GoogleCloudOptions)
    assert len(cloud.job_name) <= 75
    assert all(len(label.partition("=")[2]) <= 63 for label in cloud.labels)


def test_dataflow_has_defaults_that_can_be_overridden(job):
    options = make_options("DataflowRunner", job, [])
    assert options.view_as(WorkerOptions).machine_type == "n2-standard-4"
    assert options.view_as(GoogleCloudOptions).labels == [
        "application=shoal",
        "task=one-cluster",
        "run=2026-11-20-daily-1",
    ]
    options = make_options("DataflowRunner", job, ["--machine_type=e2-small", "--max_num_workers=3"])
    assert options.view_as(WorkerOptions).machine_type == "e2-small"
    assert options.view_as(WorkerOptions).max_num_workers == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["direct_num_workers=1"], "not a Beam option"),
        (["--runner=FlinkRunner"], "--runner is given after --"),
        (["--direct_num_workers=many"], "Beam options after -- are wrong"),
    ],
)
def test_wrong_options_are_refused(job, options, says):
    with pytest.raises(JobError, match=says):
        make_options("FnApiRunner", job, options)


def test_a_runner_without_what_it_needs_is_refused_before_anything_is_charged(job, monkeypatch):
    # Beam asks the bucket a question for the sake of a warning, and tries for a minute and a half.
    monkeypatch.setattr("apache_beam.io.gcp.gcsio.GcsIO.is_soft_delete_enabled", lambda *_: False)
    with pytest.raises(
        JobError, match="The Beam options after -- are wrong: Missing required option: region"
    ):
        prepare_run(job, "DataflowRunner", ["--temp_location=gs://bucket/temp", "--no_auth"])


def test_dataflow_would_take_the_job(bench, tmp_path):
    """Built by Dataflow's own runner until it would be sent: all rounds in one small graph."""
    job = check_job(bench.changed({"run_id": "monday"}))
    prepared = prepare_for_dataflow(job)
    delivery = Delivery(LocalFolder(str(tmp_path / "out")), "monday", job.hash(), None)
    described = json.loads(build_pipeline(prepared, delivery, prepared.plan.rounds).run().job.json())
    assert described["name"] == "shoal-one-cluster-monday"
    assert described["labels"] == {"application": "shoal", "task": "one-cluster", "run": "monday"}
    graph = build_pipeline(prepared, delivery, prepared.plan.rounds).to_runner_api()
    steps = {t.unique_name for t in graph.components.transforms.values()}
    assert {f"Rounds/{step.name}/Release" for step in prepared.plan.rounds} <= steps
    assert len(graph.SerializeToString()) < TEN_MEGABYTES / 10


def test_views_of_options_are_kept_and_stay_views(bench) -> None:
    options = make_options(EMBEDDED, check_job(bench.job), [])
    copied = copy.deepcopy(options)
    view = options.view_as(DirectOptions)
    assert options.view_as(DirectOptions) is view
    view.direct_num_workers = 7
    assert options.get_all_options()["direct_num_workers"] == 7
    assert copied.view_as(DirectOptions).direct_num_workers != 7
    again = copy.deepcopy(options)
    again.view_as(DirectOptions).direct_num_workers = 5
    assert again.get_all_options()["direct_num_workers"] == 5
    assert view.direct_num_workers == 7


class _Counting(beam.DoFn):
    COUNT = CombiningValueStateSpec("count", sum)

    def process(self, element: object, count: object = beam.DoFn.StateParam(COUNT)) -> None:
        """Ask for state."""


@pytest.mark.parametrize("times", [1, 2])
def test_what_beam_remembers_of_methods_is_what_it_would_find(times: int) -> None:
    """Also of a step that has state, and of a function in a step of a known kind."""
    for _ in range(times):
        assert userstate.get_dofn_specs(_Counting()) == ({_Counting.COUNT}, set())
        assert userstate.get_dofn_specs(beam.DoFn()) == (set(), set())
        userstate.get_dofn_specs(beam.DoFn())[0].add("of a caller")
        given = beam.DoFn()
        given.process = _Counting().process
        assert userstate.get_dofn_specs(given) == ({_Counting.COUNT}, set())
        assert core.get_function_args_defaults(_Counting().process)[0] == ["element", "count"]
        for names in (["a", "b"], ["c"]):
            function = eval(f"lambda {', '.join(names)}: 0")
            assert core.get_function_args_defaults(function) == (names, [])


def test_a_step_of_a_caller_is_looked_at_anew() -> None:
    """Its class may be changed, as by a test that replaces a method."""

    class Own(beam.DoFn):
        def process(self, element: object) -> None:
            """Do nothing."""

    assert userstate.get_dofn_specs(Own()) == (set(), set())
    Own.process = _Counting.process  # type: ignore[method-assign,assignment]
    assert userstate.get_dofn_specs(Own()) == ({_Counting.COUNT}, set())


def test_a_pipeline_that_does_not_run_leaves_no_folder(bench, tmp_path, monkeypatch):
    """Beam's folder would stay where a signal, or wrong input, ends a command while it builds a pipeline."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    open_pipeline(make_options(EMBEDDED, check_job(bench.job), ()))
    assert set(tmp_path.iterdir()) == before
