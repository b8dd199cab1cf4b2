import re
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml

from pipelines.job.job import load_job
from pipelines.run.runners import make_options
from tests.deploy.manifests import APPLIED, DEPLOY, built, containers, pod_spec
from tests.engines.conftest import parts_are_here
from tests.engines.fetch import have

VERSIONS = ["1.32", kubernetes_validate.latest_version().rpartition(".")[0]]
"""The oldest Kubernetes whose schedules tell their time for sure, and the newest that is known here."""

OBJECTS = [(folder, found) for folder in APPLIED for found in built(folder)]
PODS = [(folder, found) for folder, found in OBJECTS if pod_spec(found)]


def name_of(value: Any) -> str:
    return f"{value['kind']}/{value['metadata']['name']}" if isinstance(value, dict) else str(value)


def flink_settings() -> dict[str, Any]:
    (configuration,) = (found for found in built("flink") if found["kind"] == "ConfigMap")
    return yaml.safe_load(configuration["data"]["config.yaml"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("folder", "found"), OBJECTS, ids=name_of)
def test_it_is_what_kubernetes_takes(folder: str, found: dict[str, Any], version: str) -> None:
    assert kubernetes_validate.validate(found, version, strict=True) == version


def test_the_validator_refuses_what_kubernetes_would_not_take() -> None:
    (job,) = built("flink/submit")
    job["spec"]["backofLimit"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_the_namespace_enforces_that_standard() -> None:
    (namespace,) = (found for found in built("namespace") if found["kind"] == "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for folder, found in OBJECTS:
        assert found["kind"] == "Namespace" or found["metadata"]["namespace"] == "shoal", folder


def test_the_parts_of_flink_fit_each_other() -> None:
    from importlib.metadata import version

    images = {c["name"]: c["image"] for _, found in PODS for c in containers(found)}
    assert images["jobmanager"] == images["taskmanager"]
    tags = {name: image.partition("@")[0] for name, image in images.items()}
    assert tags["taskmanager"] == "flink:1.19.3-java17"
    assert tags["job-server"] == f"apache/beam_flink1.19_job_server:{version('apache-beam')}"


def test_ports_are_the_same_in_settings_containers_and_services() -> None:
    settings = flink_settings()
    objects = {name_of(found): found for found in built("flink")}
    listening = {
        name: {port["name"]: port["containerPort"] for c in containers(found) for port in c["ports"]}
        for name, found in objects.items()
        if pod_spec(found)
    }
    assert listening["Deployment/shoal-jobmanager"] == {
        "rpc": settings["jobmanager.rpc.port"],
        "blob": settings["blob.server.port"],
        "rest": settings["rest.port"],
    }
    assert listening["Deployment/shoal-taskmanager"] == {
        "data": settings["taskmanager.data.port"],
        "rpc": settings["taskmanager.rpc.port"],
        "pool": 50000,
    }
    service = objects["Service/shoal-jobmanager"]
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == listening[
        "Deployment/shoal-jobmanager"
    ]
    assert settings["jobmanager.rpc.address"] == settings["rest.address"] == service["metadata"]["name"]


def test_a_deployment_and_a_service_find_their_pods() -> None:
    objects = built("flink")
    labels = [found["spec"]["template"]["metadata"]["labels"] for found in objects if pod_spec(found)]
    for found in objects:
        if found["kind"] == "Service":
            assert any(found["spec"]["selector"].items() <= pod.items() for pod in labels)
        if found["kind"] == "Deployment":
            selected = found["spec"]["selector"]["matchLabels"]
            assert selected == found["spec"]["template"]["metadata"]["labels"]


def test_each_taskmanager_has_its_own_pool_beside_it() -> None:
    (workers,) = (found for found in built("flink") if found["metadata"]["name"] == "shoal-taskmanager")
    assert [container["name"] for container in containers(workers)] == ["taskmanager", "worker-pool"]
    pool = list(containers(workers))[1]
    assert pool["args"] == ["--worker_pool"]
    assert "command" not in pool, "the image's own entry point is the pool's"


@pytest.mark.parametrize("folder", ["flink/submit", "schedules/kubernetes/on-flink"])
def test_a_submission_asks_for_every_slot(folder: str) -> None:
    """The job server reads no configuration of the cluster: without the option, all runs in one slot."""
    (workers,) = (found for found in built("flink") if found["metadata"]["name"] == "shoal-taskmanager")
    slots = workers["spec"]["replicas"] * flink_settings()["taskmanager.numberOfTaskSlots"]
    (found,) = (found for found in built(folder) if found["kind"] in ("Job", "CronJob"))
    assert f"--parallelism={slots}" in submitted(found)


def test_flink_survives_a_lost_taskmanager() -> None:
    settings = flink_settings()
    assert settings["restart-strategy.type"] == "fixed-delay"
    assert settings["heartbeat.timeout"] == 10000
    assert settings["taskmanager.memory.network.min"] == "512m"


@pytest.mark.engine
def test_real_flink_takes_the_settings(tmp_path) -> None:
    """Flink's own launcher reads them and works out the memory of a TaskManager, as when a pod starts."""
    with parts_are_here():
        home = have("flink", needs=["java"])
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(flink_settings()))
    jars = [home / "bin" / "bash-java-utils.jar", *sorted((home / "lib").glob("*.jar"))]
    command = ["java", "-cp", ":".join(map(str, jars)), "org.apache.flink.runtime.util.bash.BashJavaUtils"]
    asked = [*command, "GET_TM_RESOURCE_PARAMS", "--configDir", str(tmp_path)]
    answer = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True).stdout
    network = 512 * 1024**2
    assert f"taskmanager.memory.network.min={network}b" in answer
    assert "taskmanager.numberOfTaskSlots=2" in answer
    assert "Total Process Memory:          3.000gb" in answer, "the limit of the container"


def submitted(found: dict[str, Any]) -> list[str]:
    """Return the arguments of `shoal run` in a manifest."""
    (container,) = (c for c in containers(found) if c["name"] == "shoal")
    words = container["args"]
    return words[1:] if container["command"] == ["shoal"] else words


@pytest.mark.parametrize(
    ("folder", "found"), [p for p in PODS if p[1]["kind"] in ("Job", "CronJob")], ids=name_of
)
def test_what_it_submits_is_what_the_command_takes(folder: str, found: dict[str, Any]) -> None:
    import typer.main

    from pipelines.cli import app

    run = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    read = run.make_context("run", list(submitted(found))).params
    assert re.fullmatch(r"gs://[a-z0-9-]+-shoal-jobs/airports\.yaml", read["job"])
    assert read["json_logs"] is True
    if folder in ("flink/submit", "schedules/kubernetes/on-flink"):
        assert read["runner"] == "FlinkRunner"
        options = make_options(
            "FlinkRunner", load_job(str(DEPLOY / "jobs/airports.yaml")), read["beam_options"]
        )
        given = options.get_all_options(drop_default=True)
        assert given["environment_type"] == "EXTERNAL"
        assert given["environment_config"] == "localhost:50000"
        assert given["sdk_location"] == "container"
        assert options.get_all_options()["job_endpoint"] == "localhost:8099"


def test_both_ways_to_submit_to_flink_are_the_same() -> None:
    (once,) = built("flink/submit")
    (weekly,) = (found for found in built("schedules/kubernetes/on-flink") if found["kind"] == "CronJob")

    def beam(found: dict[str, Any]) -> list[str]:
        words = submitted(found)
        return words[words.index("--") :]

    assert beam(once) == beam(weekly)
    assert next(containers(once)) == next(containers(weekly)), "the job server"


@pytest.mark.parametrize("folder", ["flink/submit", "schedules/kubernetes/in-one-pod"])
def test_what_can_not_succeed_is_not_tried_again(folder: str) -> None:
    (found,) = (found for found in built(folder) if found["kind"] in ("Job", "CronJob"))
    job = found["spec"].get("jobTemplate", found)["spec"]
    failing = job["podFailurePolicy"]["rules"][0]
    assert failing["action"] == "FailJob"
    assert failing["onExitCodes"]["values"] == [2, 3], "a wrong job, and a refusal by the ledger"
    assert job["template"]["spec"]["restartPolicy"] == "Never", "or Kubernetes would not take the policy"
    assert job["backoffLimit"] == 3
