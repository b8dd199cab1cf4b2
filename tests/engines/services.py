"""Start and stop what the engine tests run against: on loopback, on free ports, ended by process id."""

import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.engines.fetch import ROOT, have

HOST = "127.0.0.1"

PYTHON_WORKER: Mapping[str, str] = {
    # The worker pool starts plain `python`: it must be this environment's.
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
}


class StartError(RuntimeError):
    """A service did not start: its name, and the end of its log."""


def free_port() -> int:
    """Return a port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def listens(port: int) -> bool:
    """Say whether someone accepts connections on `port`."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Ask every 0.1 s until `ready`.

    Raises:
        StartError: not within `seconds`.
    """
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise StartError(f"{what}: not within {seconds:.0f} s.")
        time.sleep(0.1)


class Running:
    """A process that leads a group of its own, and writes to a log.

    Args:
        name: for the log and for errors.
        command: what to run.
        folder: where the log goes.
        environment: variables to add.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                env=os.environ | dict(environment or {}), start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its group."""
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool], seconds: float = 180) -> None:
        """Wait for it to be ready.

        Raises:
            StartError: it ended, or took too long; with the end of its log.
        """

        def ready_or_ended() -> bool:
            if self._process.poll() is not None:
                raise StartError(f"{self.name} ended with exit code {self._process.returncode}.")
            return ready()

        try:
            wait_until(ready_or_ended, seconds, f"{self.name} is not ready")
        except StartError as error:
            raise StartError(f"{error}\n{self.log.read_text(errors='replace')[-2000:]}") from None

    def is_alive(self) -> bool:
        """Say whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process alone, at once, as a crash of the machine would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End the process, and then whatever else is left of its group."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Service:
    """A context manager: it starts on entry; on exit what it ran is stopped, and its folder removed."""

    def start(self) -> None:
        """Run what is to run, and wait until it serves."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-engine-")))
            self._stack = stack
            self.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Running:
        """Run a command until the service is stopped."""
        running = Running(name, command, self.folder, environment)
        self._stack.callback(running.stop)
        return running


class ObjectServer(Service):
    """A server of object storage on loopback, which keeps preconditions."""

    scheme: ClassVar[str]
    url: str

    def settings(self, url: str) -> Mapping[str, str]:
        """Return the variables by which a process finds it, or what stands at `url` before it."""
        raise NotImplementedError

    def create_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        raise NotImplementedError

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to find it, and to look for no credentials elsewhere."""
        return self.settings(self.url)


class FakeGcs(ObjectServer):
    """fake-gcs-server with its objects in memory."""

    scheme = "gs://"

    def start(self) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        command = [str(have("fake-gcs-server")), "-scheme", "http", "-host", HOST, "-port", str(self.port)]
        command += ["-backend", "memory", "-public-host", f"{HOST}:{self.port}"]
        self.run("fake-gcs-server", command).wait_until(self._serves)

    def settings(self, url: str) -> Mapping[str, str]:
        return {"STORAGE_EMULATOR_HOST": url, "NO_GCE_CHECK": "true", "GOOGLE_CLOUD_PROJECT": "tests"}

    def create_bucket(self, name: str) -> None:
        body, kind = json.dumps({"name": name}).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/storage/v1/b?project=tests", body, kind, method="POST")
        urllib.request.urlopen(request, timeout=30).close()

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/storage/v1/b?project=tests", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False


class Versity(ObjectServer):
    """versitygw: S3 over a folder, with a lock for each object that is written under a precondition."""

    scheme = "s3://"

    def start(self) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self._root = self.folder / "buckets"
        self._root.mkdir()
        command = [str(have("versitygw")), "--quiet", "--port", f"{HOST}:{self.port}"]
        command += ["posix", str(self._root)]
        keys = {"ROOT_ACCESS_KEY": "tests", "ROOT_SECRET_KEY": "of-tests"}
        self.run("versitygw", command, keys).wait_until(lambda: listens(self.port))

    def settings(self, url: str) -> Mapping[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "of-tests"}
        return keys | {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": url}

    def create_bucket(self, name: str) -> None:
        (self._root / name).mkdir()


class Azurite(ObjectServer):
    """Microsoft's own emulator of Azure's blob storage, with its objects in memory."""

    scheme = "az://"
    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    """Of every Azurite, as its documentation says."""

    def start(self) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        main = have("azurite", ["node"]) / "node_modules/azurite/dist/src/blob/main.js"
        command = ["node", str(main), "--blobHost", HOST, "--blobPort", str(self.port)]
        command += ["--inMemoryPersistence", "--disableTelemetry", "--silent"]
        self.run("azurite", command).wait_until(lambda: listens(self.port))

    def settings(self, url: str) -> Mapping[str, str]:
        endpoint = f"BlobEndpoint={url}/{self.account}"
        return {
            "AZURE_STORAGE_CONNECTION_STRING": f"AccountName={self.account};AccountKey={self.key};{endpoint};"
        }

    def create_bucket(self, name: str) -> None:
        date, version = formatdate(usegmt=True), "2021-08-06"
        signed = [
            *("PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{version}"),
            *(f"/{self.account}/{self.account}/{name}", "restype:container"),
        ]
        digest = hmac.digest(b64decode(self.key), "\n".join(signed).encode(), "sha256")
        signature = f"SharedKey {self.account}:{b64encode(digest).decode()}"
        headers = {
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": signature,
            "Content-Length": "0",
        }
        place = f"{self.url}/{self.account}/{name}?restype=container"
        request = urllib.request.Request(place, headers=headers | {"Content-Length": "0"}, method="PUT")
        urllib.request.urlopen(request, timeout=30).close()


class Prism(Service):
    """Beam's own local portable runner, as a job server."""

    def start(self) -> None:
        self.port = free_port()
        self.endpoint = f"localhost:{self.port}"
        command = [str(have("prism")), f"-job_port={self.port}", "-serve_http=false"]
        self.run("prism", command).wait_until(lambda: listens(self.port))


class WorkerPool(Service):
    """An EXTERNAL environment: the pool starts a Python worker whenever a TaskManager asks for one."""

    def start(self) -> None:
        self.port = free_port()
        self.address = f"localhost:{self.port}"
        module = "apache_beam.runners.worker.worker_pool_main"
        command = [sys.executable, "-m", module, f"--service_port={self.port}"]
        self.run("worker-pool", command, PYTHON_WORKER).wait_until(lambda: listens(self.port))
