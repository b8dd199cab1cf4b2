import json
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.job.job import load_job
from pipelines.run.runners import make_options
from tests.deploy.manifests import DEPLOY, ROOT
from tests.deploy.scripts import load_script
from tests.engines.conftest import parts_are_here
from tests.engines.services import FakeGcs
from tests.pipelines.conftest import Bench

MAIN = DEPLOY / "dataflow" / "main.py"
METADATA = json.loads((DEPLOY / "dataflow" / "metadata.json").read_text())
PARAMETERS = {parameter["name"]: parameter for parameter in METADATA["parameters"]}

LAUNCHED = [
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=europe-west4",
    "--job_name=shoal-airports-2026-11-16",
    "--no_use_public_ips",
    '--labels={"goog-dataflow-provided-template-type": "flex"}',
    "--service_account_email=shoal-run@my-project.iam.gserviceaccount.com",
    "--no_auth",
]
"""What Dataflow's launcher makes of a launch request."""


@pytest.fixture
def main(monkeypatch) -> ModuleType:
    monkeypatch.setenv(
        "SHOAL_TEMPLATE_IMAGE", "europe-west4-docker.pkg.dev/my-project/shoal/shoal-dataflow:1"
    )
    return load_script(MAIN)


def own_parameters(main: ModuleType) -> set[str]:
    return {action.dest for action in main.make_parser()._actions} - {"help"}


def test_every_parameter_is_taken(main) -> None:
    """By main.py itself, or by Beam as an option that may be given once, with a value."""
    beam = PipelineOptions([]).get_all_options().keys()
    assert own_parameters(main) <= PARAMETERS.keys()
    for name in PARAMETERS.keys() - own_parameters(main):
        assert name in beam
        assert PipelineOptions([f"--{name}=1"]).get_all_options(drop_default=True)[name] in ("1", 1, ["1"])


def test_what_main_needs_is_what_the_template_asks_for(main) -> None:
    required = {action.dest for action in main.make_parser()._actions if action.required}
    assert required == {name for name, parameter in PARAMETERS.items() if not parameter.get("isOptional")}


@pytest.mark.parametrize("name", ["machine_type", "max_num_workers"])
def test_the_defaults_that_the_template_tells_are_the_real_ones(name: str) -> None:
    job = load_job(str(DEPLOY / "jobs" / "airports.yaml"))
    default = make_options("DataflowRunner", job, []).get_all_options()[name]
    assert PARAMETERS[name]["helpText"].endswith(f"Default: {default}.")


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=lambda parameter: parameter["name"])
def test_the_metadata_has_what_dataflow_asks_for(parameter) -> None:
    keys = {"name", "label", "helpText", "isOptional", "paramType", "regexes"}
    assert {"name", "label", "helpText", "paramType", "regexes"} <= parameter.keys() <= keys
    assert parameter["paramType"] in ("TEXT", "GCS_READ_FILE")
    assert all(re.compile(regex) for regex in parameter["regexes"])


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("job_file", "gs://bucket/jobs/airports.yaml", "airports.yaml"),
        ("run_id", "airports-2026-11-16", "airports/2026-11-16"),
        ("overrides", "privacy.epsilon=2;domain.lower=[-90, -180]", "privacy.epsilon"),
        ("overrides", "questions.p95-by-City.params.target=9; run_id=a", "questions..target=9"),
        ("machine_type", "n2-standard-4", "N2"),
        ("max_num_workers", "16", "0"),
        ("disk_size_gb", "50", "50g"),
        ("dataflow_service_options", "enable_prime", "a b"),
    ],
)
def test_a_wrong_value_is_refused_before_a_machine_starts(name: str, good: str, bad: str) -> None:
    (regex,) = PARAMETERS[name]["regexes"]
    assert re.fullmatch(regex, good)
    assert not re.fullmatch(regex, bad)


def test_the_launch_becomes_a_run_of_the_command(main) -> None:
    given = [
        "--job_file=gs://b/j.yaml",
        "--run_id=airports-2026-11-16",
        "--overrides=privacy.epsilon=2; params.target=9",
    ]
    shoal, beam = main.read_arguments([*LAUNCHED, *given])
    assert shoal[:4] == ["run", "gs://b/j.yaml", "--runner", "DataflowRunner"]
    sets = [shoal[at + 1] for at, word in enumerate(shoal) if word == "--set"]
    assert sets == ["privacy.epsilon=2", "params.target=9", "run_id=airports-2026-11-16"]
    assert "--json-logs" in shoal
    assert set(LAUNCHED[1:]) <= set(beam), "all but the runner goes on to Beam"
    assert "--runner=DataflowRunner" not in beam
    assert "--sdk_container_image=europe-west4-docker.pkg.dev/my-project/shoal/shoal-dataflow:1" in beam


def test_another_image_may_be_given(main) -> None:
    _, beam = main.read_arguments(["--job_file=gs://b/j.yaml", "--sdk_container_image=other"])
    assert [option for option in beam if option.startswith("--sdk_container_image")] == [
        "--sdk_container_image=other"
    ]


@pytest.mark.parametrize(
    ("launch", "public"), [([], False), (["--no_use_public_ips"], False), (["--use_public_ips"], True)]
)
def test_workers_have_no_public_address_unless_the_launch_asks_for_one(main, launch, public: bool) -> None:
    _, beam = main.read_arguments(["--job_file=gs://b/j.yaml", *launch])
    assert PipelineOptions(beam).get_all_options()["use_public_ips"] is public


def test_a_wrong_job_keeps_its_exit_code(tmp_path) -> None:
    """The launcher takes any other than 0 for a failed launch, and starts nothing."""
    (tmp_path / "job.yaml").write_text("task: nothing")
    command = [sys.executable, str(MAIN), f"--job_file={tmp_path / 'job.yaml'}", *LAUNCHED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert ended.returncode == 2
    assert json.loads(ended.stderr.splitlines()[-1])["exit_code"] == 2


@pytest.fixture(scope="module")
def server() -> Iterator[FakeGcs]:
    with parts_are_here(), FakeGcs() as running:
        yield running


@pytest.mark.engine
def test_a_launch_writes_the_graph_and_a_launch_after_the_release_an_idle_one(
    server, monkeypatch, tmp_path
) -> None:
    """All of it against a real object store but what only Dataflow does: to take the graph and run it."""
    from google.cloud import storage

    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    bucket = storage.Client().create_bucket("launches")
    bench = Bench(tmp_path)
    bench.job["output"] = str(tmp_path / "releases" / "{run_id}")
    bucket.blob("job.yaml").upload_from_string(json.dumps(bench.job))
    job, run = "gs://launches/job.yaml", "airports-2026-11-16"

    def launch(at: str) -> dict:
        options = [f"--{kind}_location=gs://launches/{kind}" for kind in ("staging", "temp")]
        command = [sys.executable, str(MAIN), *LAUNCHED, *options, f"--template_location=gs://launches/{at}"]
        command += [
            f"--job_file={job}",
            f"--run_id={run}",
            "--sdk_container_image=europe-west4-docker.pkg.dev/p/r/i:1",
        ]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(bucket.blob(at).download_as_bytes())

    graph = launch("first")
    assert graph["name"] == "shoal-airports-2026-11-16"
    pool = graph["environment"]["workerPools"][0]
    assert pool["ipConfiguration"] == "WORKER_IP_PRIVATE"
    assert pool["workerHarnessContainerImage"] == "europe-west4-docker.pkg.dev/p/r/i:1"
    assert pool["autoscalingSettings"]["maxNumWorkers"] == 16
    staged = [blob for blob in bucket.list_blobs(prefix="staging/") if blob.name.endswith("pipeline.pb")]
    assert len(staged) == 1
    assert staged[0].size < 10_000_000, "Dataflow takes no larger graph"

    code = "import sys; from pipelines.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "run", job, "--set", f"run_id={run}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300, cwd=ROOT)
    release = (tmp_path / "releases" / run / "release.json").read_bytes()

    idle = launch("second")
    assert idle["environment"]["workerPools"][0]["autoscalingSettings"]["maxNumWorkers"] == 1
    staged = {
        blob.name: blob for blob in bucket.list_blobs(prefix="staging/") if blob.name.endswith("pipeline.pb")
    }
    graphs = [blob.download_as_bytes() for blob in staged.values()]
    assert sum(b"Rounds" in graph for graph in graphs) == 1, "the second reads no data"
    assert (tmp_path / "releases" / run / "release.json").read_bytes() == release
