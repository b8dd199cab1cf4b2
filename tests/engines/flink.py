"""A standalone Flink cluster and Beam's job server for it, as a site would run them, on loopback."""

import json
import shutil
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from tests.engines.fetch import have
from tests.engines.services import HOST, Running, Service, free_port, listens, wait_until

CONFIGURATION: Mapping[str, str] = {
    "jobmanager.bind-host": HOST,
    "jobmanager.rpc.address": HOST,
    "jobmanager.memory.process.size": "1g",
    "rest.address": HOST,
    "rest.bind-address": HOST,
    "taskmanager.bind-host": HOST,
    "taskmanager.host": HOST,
    "taskmanager.load-balance.mode": "SLOTS",  # spread a job over the TaskManagers
    "taskmanager.memory.process.size": "2g",
    # A Beam job has many stages: the network memory that Flink gives itself is too small for them.
    "taskmanager.memory.network.min": "512m",
    "taskmanager.memory.network.max": "512m",
    "taskmanager.memory.segment-size": "16kb",  # twice as many buffers of half the size: channels are many
    # Only here: Beam's own option for retries does nothing.
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 s",
    # Beam lies in Flink's own lib folder: only then are the Python workers kept from one round to the next
    # (and only where a job sets --environment_cache_millis).
    "classloader.resolve-order": "parent-first",
    "heartbeat.interval": "2000",
    "heartbeat.timeout": "10000",
}

FLINK_OPTIONS = ("--parallelism=2", "--environment_cache_millis=60000")
"""What a job of the tests asks of Flink: two slots, and to keep its Python workers between its rounds."""


class FlinkCluster(Service):
    """One JobManager and some TaskManagers.

    Args:
        task_managers: how many to start with.
        slots: of each TaskManager.
    """

    def __init__(self, task_managers: int = 1, slots: int = 2) -> None:
        self._wanted = task_managers
        self._slots = slots
        self._task_managers: list[Running] = []
        self._started = 0

    def start(self) -> None:
        self._home = have("flink", ["java"])
        self.rest_port = free_port()
        for name in ("conf", "lib", "log", "tmp"):
            (self.folder / name).mkdir()
        for jar in [*(self._home / "lib").iterdir(), have("job-server") / "worker.jar"]:
            (self.folder / "lib" / jar.name).symlink_to(jar)
        for file in (self._home / "conf").iterdir():
            if file.suffix != ".yaml":
                shutil.copy(file, self.folder / "conf")
        settings = {
            **CONFIGURATION,
            "jobmanager.rpc.port": str(free_port()),
            "rest.port": str(self.rest_port),
            "taskmanager.numberOfTaskSlots": str(self._slots),
            "io.tmp.dirs": str(self.folder / "tmp"),
            "web.tmpdir": str(self.folder / "tmp"),
            "env.java.opts.all": self._java_options(),
        }
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in settings.items()]
        (self.folder / "conf" / "config.yaml").write_text("".join(lines))
        manager = self._run_script("jobmanager", "jobmanager.sh")
        manager.wait_until(lambda: listens(self.rest_port))
        self.resize(self._wanted)

    def resize(self, task_managers: int) -> None:
        """Start or stop TaskManagers until so many are alive and known to the JobManager."""
        self._task_managers = [each for each in self._task_managers if each.is_alive()]
        for extra in self._task_managers[task_managers:]:
            extra.stop()
        del self._task_managers[task_managers:]
        while len(self._task_managers) < task_managers:
            self._task_managers.append(self._run_script(f"taskmanager-{self._started}", "taskmanager.sh"))
            self._started += 1
        wait_until(
            lambda: self.ask("overview").get("taskmanagers") == task_managers,
            180,
            f"Flink has not got its {task_managers} TaskManagers (logs in {self.folder})",
        )

    def kill_task_manager(self) -> None:
        """Kill the last TaskManager by its process id, as a crash would; its workers are left alone."""
        self._task_managers[-1].kill()

    def last_job(self) -> str | None:
        """Return the id of the job that was submitted last."""
        jobs = self.ask("jobs/overview").get("jobs", [])
        return max(jobs, key=lambda job: job["start-time"])["jid"] if jobs else None

    def progress(self) -> float:
        """Return the part of the last job's stages that are done."""
        states = [stage["status"] for stage in self.ask(f"jobs/{self.last_job()}").get("vertices", [])]
        return states.count("FINISHED") / max(1, len(states))

    def task_managers_of_last_job(self) -> set[str]:
        """Return the TaskManagers that worked for the last job."""
        job = self.last_job()
        return {
            host["taskmanager-id"]
            for stage in self.ask(f"jobs/{job}")["vertices"]
            for host in self.ask(f"jobs/{job}/vertices/{stage['id']}/taskmanagers")["taskmanagers"]
            if host["taskmanager-id"] != "(unassigned)"
        }

    def failures(self) -> list[str]:
        """Return the kinds of failure that the last job went through."""
        history = self.ask(f"jobs/{self.last_job()}/exceptions")["exceptionHistory"]["entries"]
        return [entry["exceptionName"] for entry in history]

    def ask(self, path: str) -> Any:
        """Return what the JobManager answers at `path` of its REST interface; {} while it does not."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.rest_port}/{path}", timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return {}

    def _run_script(self, name: str, script: str) -> Running:
        environment = {
            "FLINK_CONF_DIR": str(self.folder / "conf"),
            "FLINK_LIB_DIR": str(self.folder / "lib"),
            "FLINK_LOG_DIR": str(self.folder / "log"),
            "FLINK_PID_DIR": str(self.folder / "tmp"),
        }
        return self.run(name, [str(self._home / "bin" / script), "start-foreground"], environment)

    def _java_options(self) -> str:
        """What Flink's own configuration opens of Java 17."""
        text = (self._home / "conf" / "config.yaml").read_text()
        return next(line.partition("all:")[2].strip() for line in text.splitlines() if "all: --add" in line)


class JobServer(Service):
    """Beam's job server for a cluster."""

    def __init__(self, cluster: FlinkCluster) -> None:
        self._cluster = cluster

    def start(self) -> None:
        self.port = free_port()
        self.endpoint = f"localhost:{self.port}"
        jar = have("job-server", ["java"]) / "job-server.jar"
        options: Sequence[str] = (
            f"--flink-master={HOST}:{self._cluster.rest_port}",
            f"--job-host={HOST}",
            f"--job-port={self.port}",
            "--artifact-port=0",
            "--expansion-port=-1",
            f"--artifacts-dir={self.folder / 'artifacts'}",
        )
        server = self.run("job-server", ["java", "-Xmx1g", "-jar", str(jar), *options])
        server.wait_until(lambda: listens(self.port))
