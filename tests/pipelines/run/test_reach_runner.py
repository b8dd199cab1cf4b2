"""What a runner needs is looked for before a run is charged: workers with this code, addresses, files."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import FlinkJarJobServer
from apache_beam.runners.portability.local_job_service import LocalJobServicer
from apache_beam.runners.portability.prism_runner import PrismJobServer
from apache_beam.utils.subprocess_server import JavaJarServer
from google.auth.exceptions import DefaultCredentialsError

from pipelines.errors import JobError, RunError
from pipelines.ledger.ledger import Ledger, create_ledger, read_ledger
from pipelines.run.reach_runner import check_credentials, check_workers, reach_runner

POOL = ["--environment_type=EXTERNAL", "--environment_config=localhost:50000"]
CONFIG = json.dumps({"refresh-interval": 3000, "flink-version": "1.19.3"})


@pytest.fixture
def serve() -> Iterator[Callable[[str, int], str]]:
    """Return what starts an HTTP server that always answers the same, and returns its address."""
    servers = []

    def start(body: str, code: int = 200) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(code if self.path == "/config" else 404)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def nobody() -> Iterator[str]:
    """Return an address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_dataflow_without_credentials_is_refused_before_anything_is_charged(bench, monkeypatch):
    def none(**_: object) -> None:
        raise DefaultCredentialsError("of a file that may be quoted")

    monkeypatch.setattr("google.auth.default", none)
    ledger = str(bench.folder / "ledger.json")
    create_ledger(ledger, Ledger(epsilon=5.0, delta=1e-4))
    cloud = ("--project=p", "--region=r", "--temp_location=gs://bucket/temp", "--sdk_container_image=image")
    given = {"privacy.ledger": ledger}
    result = bench.run(given, "--runner", "DataflowRunner", "--", *cloud)
    assert result.exit_code == 1
    assert result.stderr.startswith("shoal: --runner is DataflowRunner, but there are no usable Google")
    assert "quoted" not in result.stderr and result.stderr.strip().count("\n") == 0
    assert not read_ledger(ledger).charges
    assert not (bench.folder / "out").exists()


@pytest.mark.parametrize("options", [["--runner=DataflowRunner", "--no_auth"], ["--runner=FlinkRunner"]])
def test_credentials_are_looked_for_where_dataflow_needs_them(options, monkeypatch):
    looked = []
    monkeypatch.setattr("google.auth.default", lambda **given: looked.append(given))
    check_credentials(PipelineOptions(options))
    assert not looked
    check_credentials(PipelineOptions(["--runner=DataflowRunner"]))
    assert looked


@pytest.fixture(autouse=True)
def java(tmp_path, monkeypatch) -> None:
    """A java that is never started."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture(autouse=True)
def jars(tmp_path, monkeypatch) -> Path:
    """Return a folder of fetched programs that has the job server of every Flink, and no Prism."""
    versions = FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS
    addresses = [
        FlinkJarJobServer(PipelineOptions(flink_version=version)).path_to_jar() for version in versions
    ]
    for address in addresses:
        (tmp_path / address.rpartition("/")[2]).touch()
    monkeypatch.setattr(JavaJarServer, "JAR_CACHE", str(tmp_path))
    monkeypatch.setattr(PrismJobServer, "BIN_CACHE", str(tmp_path / "prism"))
    return tmp_path


@pytest.fixture
def offline(monkeypatch, nobody) -> None:
    """A network that lets nothing out."""
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", f"http://{nobody}")


def reach(runner: str, *options: str) -> None:
    given = PipelineOptions([f"--runner={runner}", *options])
    check_workers(given)
    reach_runner(given)


def test_flink_is_found_by_its_rest_interface(serve, jars, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    address = serve(CONFIG)
    reach("FlinkRunner", f"--flink_master={address}", "--flink_version=1.19", *POOL)
    reach("FlinkRunner", f"--flink_master=http://{address}/", "--flink_version=1.19", *POOL)
    jar = jars / "b.jar"
    jar.touch()
    reach("FlinkRunner", f"--flink_master={address}", f"--flink_job_server_jar={jar}", *POOL)
    reach("FlinkRunner", f"--flink_master={address}", "--flink_job_server_jar=https://a/b.jar", *POOL)


@pytest.mark.parametrize("master", ["[auto]", "[local]"])
def test_a_local_flink_needs_no_address(master):
    reach("FlinkRunner", f"--flink_master={master}")


def test_nobody_answers_for_flink(nobody):
    said = (
        rf"there was no response from http://{nobody}/config \(Connection refused\), so nothing was charged"
    )
    with pytest.raises(RunError, match=f"--flink_master is {nobody}: {said}"):
        reach("FlinkRunner", f"--flink_master={nobody}", *POOL)


@pytest.mark.parametrize(
    ("body", "code", "kind", "says"),
    [
        ("<html>", 200, JobError, "not from Flink's REST interface"),
        ("[]", 200, JobError, "not from Flink's REST interface"),
        ("[" * 90_000, 200, JobError, "not from Flink's REST interface"),
        ("", 404, JobError, "it answered 404"),
        ("", 503, RunError, "it answered 503"),
        (CONFIG, 200, JobError, r"--flink_version is [\d.]+, but .* runs Flink 1.19.3"),
    ],
)
def test_something_else_answers_for_flink(serve, body, code, kind, says):
    with pytest.raises(kind, match=says):
        reach("FlinkRunner", f"--flink_master={serve(body, code)}", *POOL)


@pytest.mark.parametrize(
    "master", ["", "a b:1", "[collection]", "h:99999", "h:x", "h:1/path", "u@h:1", "http://"]
)
def test_an_address_of_flink_that_is_none(master):
    with pytest.raises(JobError, match="it must be HOST:PORT of Flink's REST interface"):
        reach("FlinkRunner", f"--flink_master={master}", *POOL)


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", ["--flink_master=h:1"]),
        ("FlinkRunner", ["--flink_master=localhost:1"]),
        ("FlinkRunner", ["--flink_master=h:1", "--environment_type=DOCKER"]),
        ("FlinkRunner", ["--flink_master=h:1", "--sdk_container_image=passed-over"]),
        ("FlinkRunner", ["--environment_type=DOCKER"]),
        ("PrismRunner", ["--environment_type=DOCKER"]),
    ],
)
def test_workers_without_this_code(runner, options):
    with pytest.raises(JobError, match="--environment_type is missing or has no image: workers need Shoal"):
        check_workers(PipelineOptions([f"--runner={runner}", *options]))


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FnApiRunner", []),
        ("PrismRunner", []),
        ("FlinkRunner", []),
        ("FlinkRunner", ["--job_endpoint=h:1"]),
        ("FlinkRunner", ["--flink_master=h:1", "--environment_config=image"]),
        ("FlinkRunner", ["--flink_master=h:1", "--environment_options=docker_container_image=image"]),
        ("FlinkRunner", ["--flink_master=h:1", "--environment_type=PROCESS", "--environment_config={}"]),
        ("FlinkRunner", ["--flink_master=h:1", "--environment_type=LOOPBACK"]),
        ("FlinkRunner", ["--flink_master=h:1", "--extra_package=shoal.whl"]),
        ("DataflowRunner", ["--sdk_container_image=image"]),
    ],
)
def test_workers_with_this_code(runner, options):
    check_workers(PipelineOptions([f"--runner={runner}", *options]))


def test_dataflow_needs_an_image():
    with pytest.raises(JobError, match="--sdk_container_image is missing"):
        check_workers(PipelineOptions(["--runner=DataflowRunner"]))


def test_an_environment_that_beam_does_not_know():
    with pytest.raises(JobError, match="--environment_type is docker: it must be DOCKER, PROCESS"):
        check_workers(PipelineOptions(["--runner=FlinkRunner", "--environment_type=docker"]))


@pytest.mark.parametrize("runner", ["FlinkRunner", "PrismRunner"])
def test_a_job_server(runner, nobody):
    service = LocalJobServicer()
    port = service.start_grpc_server()
    try:
        reach(runner, f"--job_endpoint=localhost:{port}", "--job_server_timeout=20")
    finally:
        service.stop()
    with pytest.raises(RunError, match=f"--job_endpoint is {nobody}: no job server answered there in 1 s"):
        reach(runner, f"--job_endpoint={nobody}", "--job_server_timeout=1")
    for address in ("embed", "localhost", "http://localhost:1", "unix:/a:1"):
        with pytest.raises(JobError, match="it must be HOST:PORT of a job server"):
            reach(runner, f"--job_endpoint={address}")


def test_what_starts_a_job_server(tmp_path, monkeypatch):
    with pytest.raises(JobError, match="there is no such file"):
        reach("FlinkRunner", f"--flink_job_server_jar={tmp_path / 'no.jar'}")
    with pytest.raises(JobError, match="there is no such file"):
        reach("FlinkRunner", f"--flink_job_server_jar={tmp_path}")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(JobError, match="--job_server_java_launcher is java, but there is no such command"):
        reach("FlinkRunner")


@pytest.mark.parametrize(
    ("runner", "options", "says"),
    [
        ("FlinkRunner", [], r"--flink_job_server_jar is missing: https://\S+\.jar cannot be fetched"),
        ("FlinkRunner", [], r"give a copy of it as --flink_job_server_jar, or --job_endpoint of a running"),
        ("FlinkRunner", ["--flink_submit_uber_jar"], r"missing: https://\S+\.jar cannot be fetched"),
        ("FlinkRunner", ["--flink_job_server_jar=https://a/c.jar"], r"is https://a/c.jar: https://a/c.jar"),
        ("PrismRunner", [], r"--prism_location is missing: https://\S+\.zip cannot be fetched"),
    ],
)
def test_a_program_that_beam_cannot_fetch(offline, jars, runner, options, says):
    for jar in jars.glob("*.jar"):
        jar.unlink()
    with pytest.raises(RunError, match=says):
        reach(runner, *options)


def test_a_prism_that_beam_has_fetched(offline, jars):
    address = PrismJobServer(PipelineOptions([])).path_to_binary()
    (jars / "prism").mkdir()
    (jars / "prism" / address.rpartition("/")[2]).touch()
    reach("PrismRunner")


def test_where_prism_is(tmp_path):
    program = tmp_path / "bin" / "java"
    reach("PrismRunner", f"--prism_location={program}")
    program.chmod(0o644)
    for place in (program, tmp_path, "/dev/null"):
        with pytest.raises(JobError, match="it must be an executable file, or a zip file of one"):
            reach("PrismRunner", f"--prism_location={place}")
    for place in (tmp_path / "no", "https://example.com/prism.zip"):
        with pytest.raises(JobError, match="it must be a file or the URL of a release of Beam"):
            reach("PrismRunner", f"--prism_location={place}")


@pytest.mark.parametrize("dry_run", [True, False])
def test_nothing_is_charged_where_nobody_answers(bench, nobody, dry_run):
    path = str(bench.folder / "ledger.json")
    create_ledger(path, Ledger(epsilon=5.0, delta=1e-5))
    options = [*(["--dry-run"] if dry_run else []), "--runner", "FlinkRunner", "--"]
    result = bench.run({"privacy.ledger": path}, *options, f"--flink_master={nobody}", *POOL)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert f"--flink_master is {nobody}: there was no response" in result.stderr
    assert read_ledger(path).charges == ()
    assert not (bench.folder / "out").exists()
