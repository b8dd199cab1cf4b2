"""A schedule's run, its retry and the other schedules' run for the same day have one run id."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.job.job import load_job
from tests.deploy.manifests import DEPLOY, built
from tests.deploy.scripts import load_script
from tests.deploy.workflow import Raised, Workflow

DUE = datetime(2026, 11, 16, 3, tzinfo=UTC)
"""A Monday."""

RUN_ID = "airports-2026-11-15"
"""Of the Sunday before: on Monday at 03:00, that is the last day whose rows are all there."""

LAUNCH = "googleapis.dataflow.v1b3.projects.locations.flexTemplates.launch"
LOOK = "googleapis.dataflow.v1b3.projects.locations.jobs.get"


def scheduled_job(time: str | None = "2026-11-16T03:00:00Z") -> dict[str, Any]:
    """Return a Job as a CronJob's controller makes it."""
    annotations = {} if time is None else {"batch.kubernetes.io/cronjob-scheduled-timestamp": time}
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "airports", "controller": True}
    metadata = {"name": "airports-29654100", "annotations": annotations, "ownerReferences": [owner]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


class Kubernetes(HTTPServer):
    """An API that knows one Job, and who may ask."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.job = job
        self.asked: list[tuple[str, str | None]] = []


class _Answers(BaseHTTPRequestHandler):
    server: Kubernetes

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.job).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes(scheduled_job()) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def pod(monkeypatch, tmp_path, kubernetes) -> Any:
    """Return what a pod of the Job executes in the end."""
    (tmp_path / "token").write_text("secret\n")

    def run(*arguments: str) -> list[str]:
        script = load_script(DEPLOY / "schedules/kubernetes/scheduled_run.py")
        executed: list[str] = []
        monkeypatch.setattr(script, "ACCOUNT", str(tmp_path))
        monkeypatch.setattr(script, "API", f"http://127.0.0.1:{kubernetes.server_port}")
        monkeypatch.setattr(script.os, "execvp", lambda file, words: executed.extend(words))
        monkeypatch.setenv("JOB_NAME", "airports-29654100")
        monkeypatch.setenv("JOB_NAMESPACE", "shoal")
        monkeypatch.setattr(script.sys, "argv", ["scheduled-run", *arguments])
        script.main()
        return executed

    return run


def test_a_pod_and_the_pod_that_replaces_it_run_under_the_day_before_the_schedule(pod, kubernetes) -> None:
    first = pod("gs://b/airports.yaml", "--json-logs")
    assert first == ["shoal", "run", "--set", f"run_id={RUN_ID}", "gs://b/airports.yaml", "--json-logs"]
    assert pod("gs://b/airports.yaml", "--json-logs") == first
    assert set(kubernetes.asked) == {
        ("/apis/batch/v1/namespaces/shoal/jobs/airports-29654100", "Bearer secret")
    }


def test_a_job_that_no_schedule_made_has_no_run_id(pod, kubernetes, capsys) -> None:
    """As by `kubectl create job --from=cronjob/airports`; exit code 2 is not tried again."""
    kubernetes.job = scheduled_job(None)
    with pytest.raises(SystemExit) as ended:
        pod("gs://b/airports.yaml")
    assert ended.value.code == 2
    assert "Job airports-29654100 has no time of a schedule" in capsys.readouterr().err


@pytest.mark.parametrize("owners", [[], [{"kind": "Workflow", "name": "airports"}]])
def test_a_job_that_is_of_no_cron_job_has_no_run_id(owners: list[dict[str, str]]) -> None:
    """A copy of a Job keeps its annotations, and a run id without a name would be that of all jobs."""
    script, job = load_script(DEPLOY / "schedules/kubernetes/scheduled_run.py"), scheduled_job()
    job["metadata"]["ownerReferences"] = owners
    with pytest.raises(ValueError, match="Job airports-29654100 has no time of a schedule"):
        script.run_id(job)


def test_the_date_is_that_of_the_schedule_s_own_time_zone() -> None:
    script = load_script(DEPLOY / "schedules/kubernetes/scheduled_run.py")
    assert script.run_id(scheduled_job("2026-11-17T00:30:00+09:00")) == "airports-2026-11-16"
    assert script.run_id(scheduled_job("2026-11-16T23:30:00-08:00")) == "airports-2026-11-15"
    assert script.run_id(scheduled_job("2026-03-01T03:00:00Z")) == "airports-2026-02-28"


def test_the_pod_is_told_its_job_and_may_read_it() -> None:
    objects = {found["kind"]: found for found in built("schedules/kubernetes/in-one-pod")}
    cron = objects["CronJob"]
    assert cron["metadata"]["name"] == "airports"
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    assert (cron["spec"]["schedule"], cron["spec"]["timeZone"]) == ("0 3 * * 1", "Etc/UTC")
    spec = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    fields = {env["name"]: env["valueFrom"]["fieldRef"]["fieldPath"] for env in spec["containers"][0]["env"]}
    assert fields == {
        "JOB_NAME": "metadata.labels['batch.kubernetes.io/job-name']",
        "JOB_NAMESPACE": "metadata.namespace",
    }
    (token,) = (volume["projected"] for volume in spec["volumes"] if "projected" in volume)
    files = [
        source["path"] for part in token["sources"] for source in part.get("configMap", {}).get("items", [])
    ]
    assert [*files, token["sources"][0]["serviceAccountToken"]["path"]] == ["ca.crt", "token"]
    script = load_script(DEPLOY / "schedules/kubernetes/scheduled_run.py")
    assert script.ACCOUNT in [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
    assert objects["Role"]["rules"] == [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}]
    (subject,) = objects["RoleBinding"]["subjects"]
    assert subject["name"] == spec["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert objects["RoleBinding"]["roleRef"]["name"] == objects["Role"]["metadata"]["name"]


_GCLOUD = """\
#!/usr/bin/env python3
import json, sys
with open({noted!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit({found} if "describe" in sys.argv else 0)
"""


def scheduled(tmp_path: Path, *arguments: str, exists: bool = False) -> list[list[str]]:
    """Run schedule.sh with a gcloud that only notes what it is told; return the calls."""
    noted = tmp_path / "calls"
    gcloud = tmp_path / "gcloud"
    gcloud.write_text(_GCLOUD.format(noted=str(noted), found=0 if exists else 1))
    gcloud.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    command = ["bash", str(DEPLOY / "schedules/google/schedule.sh"), "my-project", "airports", "gs://t.json"]
    subprocess.run([*command, *arguments], check=True, env={**os.environ, "PATH": path}, timeout=60)
    return [json.loads(line) for line in noted.read_text().splitlines()]


def argument_of(calls: list[list[str]]) -> dict[str, Any]:
    """Return what Cloud Scheduler would hand to the workflow."""
    scheduler = calls[-1]
    body = json.loads(scheduler[scheduler.index("--message-body") + 1])
    assert body.keys() == {"argument"}
    return json.loads(body["argument"])


class Dataflow:
    """Notes launches; each job goes through the states given for it."""

    def __init__(self, *lives: list[str] | int) -> None:
        self._lives = list(lives)
        self.launched: list[dict[str, Any]] = []
        self._states: list[str] = []

    @property
    def calls(self) -> dict[str, Any]:
        return {LAUNCH: self._launch, LOOK: self._look}

    def _launch(self, args: dict[str, Any]) -> dict[str, Any]:
        self.launched.append(args["body"]["launchParameter"])
        life = self._lives.pop(0)
        if isinstance(life, int):
            raise Raised({"code": life})
        self._states = [f"JOB_STATE_{state}" for state in life]
        return {"job": {"id": f"job-{len(self.launched)}"}}

    def _look(self, args: dict[str, Any]) -> dict[str, Any]:
        assert args["jobId"] == f"job-{len(self.launched)}"
        return {"currentState": self._states.pop(0)}


@pytest.fixture
def workflow() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "schedules/google/workflow.yaml").read_text())


@pytest.fixture
def argument(tmp_path) -> dict[str, Any]:
    return argument_of(scheduled(tmp_path))


def test_the_workflow_launches_the_template_and_waits_for_its_end(workflow, argument) -> None:
    dataflow = Dataflow(["QUEUED", "RUNNING", "DONE"])
    run = Workflow(workflow, dataflow.calls, DUE + timedelta(seconds=7))
    assert run.run(argument) == RUN_ID
    (launched,) = dataflow.launched
    assert launched["parameters"] == {
        "job_file": "gs://my-project-shoal-jobs/airports.yaml",
        "run_id": RUN_ID,
    }
    assert launched["jobName"] == f"shoal-{RUN_ID}"
    assert launched["containerSpecGcsPath"] == "gs://t.json"
    assert launched["environment"]["ipConfiguration"] == "WORKER_IP_PRIVATE"
    assert launched["environment"]["serviceAccountEmail"] == "shoal-run@my-project.iam.gserviceaccount.com"
    assert run.clock - DUE.timestamp() == 7 + 3 * 60


def test_a_job_that_failed_is_launched_again_under_the_same_run_id_also_after_midnight(
    workflow, argument
) -> None:
    dataflow = Dataflow(["RUNNING"] * 2000 + ["FAILED"], ["FAILED"], ["DONE"])
    run = Workflow(workflow, dataflow.calls, DUE)
    assert run.run(argument) == RUN_ID
    assert run.clock > (DUE + timedelta(days=1)).timestamp()
    assert [launched["parameters"]["run_id"] for launched in dataflow.launched] == [RUN_ID] * 3


@pytest.mark.parametrize("lives", [[["FAILED"]] * 3, [["CANCELLED"]]], ids=["failed", "cancelled"])
def test_it_gives_up_and_says_so(workflow, argument, lives) -> None:
    dataflow = Dataflow(*lives)
    with pytest.raises(Raised, match=f"Run {RUN_ID} did not succeed"):
        Workflow(workflow, dataflow.calls, DUE).run(argument)
    assert len(dataflow.launched) == len(lives)


def test_a_second_call_for_the_same_date_finds_the_first_one_s_job(workflow, argument) -> None:
    assert Workflow(workflow, Dataflow(409).calls, DUE + timedelta(minutes=50)).run(argument) == RUN_ID
    with pytest.raises(Raised):
        Workflow(workflow, Dataflow(403).calls, DUE).run(argument)


@pytest.mark.parametrize("hour", [0, 3, 23])
def test_a_late_call_has_the_date_of_the_schedule(workflow, tmp_path, hour: int) -> None:
    """Cloud Scheduler tries again for at most an hour, which is within the day that the date stands for."""
    calls = scheduled(tmp_path, "europe-west4", str(hour), "*")
    scheduler = calls[-1]
    assert scheduler[scheduler.index("--schedule") + 1] == f"0 {hour} * * *"
    assert scheduler[scheduler.index("--max-retry-duration") + 1] == "3600s"
    due = DUE.replace(hour=hour)
    for late in (timedelta(0), timedelta(hours=1, minutes=5), timedelta(hours=23, minutes=59)):
        run = Workflow(workflow, Dataflow(["DONE"]).calls, due + late)
        assert run.run(argument_of(calls)) == RUN_ID
    next_day = Workflow(workflow, Dataflow(["DONE"]).calls, due + timedelta(days=1))
    assert next_day.run(argument_of(calls)) == "airports-2026-11-16"


def test_a_schedule_that_is_there_is_changed(tmp_path) -> None:
    made, changed = scheduled(tmp_path)[-1], scheduled(tmp_path, exists=True)[-1]
    assert made[:4] == ["scheduler", "jobs", "create", "http"]
    assert changed[:4] == ["scheduler", "jobs", "update", "http"]
    assert "--headers" in made
    assert "--update-headers" in changed


@pytest.mark.parametrize("wrong", [("r", "24"), ("r", "3", "7"), ("r", "03"), ("r", "x")])
def test_a_schedule_that_is_none_is_refused(tmp_path, wrong) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        scheduled(tmp_path, *wrong)
    assert refused.value.returncode == 2


def test_a_run_id_of_a_schedule_is_one_that_the_job_file_takes() -> None:
    job = load_job(str(DEPLOY / "jobs/airports.yaml"), [f"run_id={RUN_ID}"])
    assert job.run_id == RUN_ID
    assert job.output.endswith(f"/airports/{RUN_ID}")


def test_a_run_id_of_a_schedule_has_the_folder_of_its_day() -> None:
    path = "gs://my-project-shoal-data/visits/day={date}"
    job = load_job(str(DEPLOY / "jobs/airports.yaml"), [f"run_id={RUN_ID}", f"input.path={path}"])
    assert job.input.path == "gs://my-project-shoal-data/visits/day=2026-11-15"
