"""Every pod of deploy/ keeps to every rule, of manifests and of DAGs, also of those that will be written."""

import copy
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.manifests import APPLIED, DEPLOY, built, containers, operated, pod_spec, pod_template
from tests.deploy.rules import complaints

PODS = [(folder, found) for folder in APPLIED for found in built(folder) if pod_template(found)]
PROGRAMS = sorted(path for path in DEPLOY.rglob("*.py") if "PodOperator" in path.read_text())
PODS += [(path.name, pod) for path in PROGRAMS for pod in operated(path)]

README = (DEPLOY / "README.md").read_text()


def name_of(value: Any) -> str:
    return f"{value['kind']}/{value['metadata']['name']}" if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("place", "found"), PODS, ids=name_of)
def test_a_pod_keeps_to_the_rules(place: str, found: dict[str, Any]) -> None:
    assert complaints(found) == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_pod_of_a_program_is_what_kubernetes_takes(program: Path) -> None:
    assert operated(program)
    for pod in operated(program):
        newest = kubernetes_validate.latest_version().rpartition(".")[0]
        kubernetes_validate.validate(pod, newest, strict=True)


def test_no_pod_is_made_elsewhere() -> None:
    """So that these tests see all of them: pods are in kustomizations, and in the operators of DAGs."""
    manifests = {path for suffix in ("yaml", "yml", "json") for path in DEPLOY.rglob(f"*.{suffix}")}
    applied = set()
    for folder in APPLIED:
        settings = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())
        names = [*settings["resources"], *(patch["path"] for patch in settings.get("patches", []))]
        applied |= {(DEPLOY / folder / name).resolve() for name in names}
    for path in manifests - applied:
        objects = [found for found in yaml.safe_load_all(path.read_text()) if isinstance(found, dict)]
        assert not [
            found for found in objects if "apiVersion" in found and found["kind"] != "Kustomization"
        ], path
    for path in {*DEPLOY.rglob("*.py"), *DEPLOY.rglob("*.sh")} - set(PROGRAMS):
        assert not re.search(r"V1Pod|V1Container|kubectl (run|create)|docker run", path.read_text()), path


@pytest.mark.parametrize("folder", APPLIED)
def test_the_readme_says_to_apply_it(folder: str) -> None:
    assert re.search(rf"kubectl apply --kustomize deploy/{folder}\s", README)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="it needs kubectl")
@pytest.mark.parametrize("folder", APPLIED)
def test_the_real_kustomize_builds_the_same(folder: str) -> None:
    command = ["kubectl", "kustomize", str(DEPLOY / folder)]
    real = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert sorted(yaml.safe_load_all(real), key=name_of) == sorted(built(folder), key=name_of)


def pod(found: dict[str, Any]) -> dict[str, Any]:
    return pod_spec(found) or {}


def first(found: dict[str, Any]) -> dict[str, Any]:
    return next(containers(found))


WRONG: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "root": ("runAsNonRoot", lambda f: pod(f)["securityContext"].pop("runAsNonRoot")),
    "user 0": ("as root", lambda f: first(f)["securityContext"].update(runAsUser=0)),
    "any system call": ("seccompProfile", lambda f: pod(f)["securityContext"].pop("seccompProfile")),
    "a token": ("automount", lambda f: pod(f).pop("automountServiceAccountToken")),
    "the default account": ("service account", lambda f: pod(f).pop("serviceAccountName")),
    "the node's network": ("hostNetwork", lambda f: pod(f).update(hostNetwork=True)),
    "more rights": ("Escalation", lambda f: first(f)["securityContext"].pop("allowPrivilegeEscalation")),
    "a root that is written": (
        "readOnlyRoot",
        lambda f: first(f)["securityContext"].pop("readOnlyRootFilesystem"),
    ),
    "capabilities": ("capabilities", lambda f: first(f)["securityContext"].pop("capabilities")),
    "no /tmp": ("nowhere to write", lambda f: first(f).update(volumeMounts=[])),
    "no request of cpu": ("requests no cpu", lambda f: first(f)["resources"]["requests"].pop("cpu")),
    "no limit of memory": ("memory", lambda f: first(f)["resources"]["limits"].pop("memory")),
    "no limit of disk": ("ephemeral", lambda f: first(f)["resources"]["limits"].pop("ephemeral-storage")),
    "emptyDir without limit": ("sizeLimit", lambda f: pod(f)["volumes"][-1].update(emptyDir={})),
    "emptyDir too large": ("evicted", lambda f: pod(f)["volumes"][-1].update(emptyDir={"sizeLimit": "50Gi"})),
    "a folder of the node": (
        "may be mounted",
        lambda f: pod(f)["volumes"][-1].update(hostPath={"path": "/"}),
    ),
    "a tag alone": ("tag and digest", lambda f: first(f).update(image="flink:1.19.3-java17")),
    "latest": ("tag and digest", lambda f: first(f).update(image="shoal")),
    "half a digest": ("tag and digest", lambda f: first(f).update(image="flink:1@sha256:abc")),
    "a secret argument": ("a secret", lambda f: first(f).setdefault("args", []).append("--password=x")),
    "a secret variable": ("a secret", lambda f: first(f).update(env=[{"name": "API_KEY", "value": "x"}])),
}

WRONG_JOBS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "no deadline": ("activeDeadline", lambda j: j.pop("activeDeadlineSeconds")),
    "many tries": ("backoffLimit", lambda j: j.pop("backoffLimit")),
    "tries without end": ("restartPolicy", lambda j: j["template"]["spec"].update(restartPolicy="OnFailure")),
}

WRONG_SCHEDULES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "two at once": ("concurrencyPolicy", lambda s: s.update(concurrencyPolicy="Allow")),
    "history": ("successfulJobsHistoryLimit", lambda s: s.pop("successfulJobsHistoryLimit")),
    "late for ever": ("startingDeadlineSeconds", lambda s: s.pop("startingDeadlineSeconds")),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("place", "found"), PODS, ids=name_of)
def test_a_wrong_pod_is_noticed(place: str, found: dict[str, Any], wrong: str) -> None:
    told, change = WRONG[wrong]
    changed = copy.deepcopy(found)
    change(changed)
    assert [line for line in complaints(changed) if told in line]


@pytest.mark.parametrize("wrong", WRONG_JOBS)
@pytest.mark.parametrize(("place", "found"), [p for p in PODS if p[1]["kind"].endswith("Job")], ids=name_of)
def test_a_wrong_job_is_noticed(place: str, found: dict[str, Any], wrong: str) -> None:
    told, change = WRONG_JOBS[wrong]
    changed = copy.deepcopy(found)
    change(changed["spec"].get("jobTemplate", changed)["spec"])
    assert [line for line in complaints(changed) if told in line]


@pytest.mark.parametrize("wrong", WRONG_SCHEDULES)
def test_a_wrong_schedule_is_noticed(wrong: str) -> None:
    told, change = WRONG_SCHEDULES[wrong]
    (changed,) = (found for found in built("schedules/kubernetes/in-one-pod") if found["kind"] == "CronJob")
    change(changed["spec"])
    assert [line for line in complaints(changed) if told in line]


def test_a_token_for_the_job_server_is_noticed() -> None:
    (changed,) = (found for found in built("schedules/kubernetes/on-flink") if found["kind"] == "CronJob")
    first(changed)["volumeMounts"].append({"name": "kubernetes", "mountPath": "/token", "readOnly": True})
    assert complaints(changed) == ["job-server: it has a token of Kubernetes that it does not need"]


def test_an_image_has_one_tag_and_digest_everywhere() -> None:
    images = {container["image"] for _, found in PODS for container in containers(found)}
    assert len({image.partition(":")[0] for image in images}) == len(images) == 3


def test_the_readme_fills_every_gap() -> None:
    """Also the digests of images, which are no digests before."""
    texts = [path.read_text() for suffix in ("yaml", "py") for path in DEPLOY.rglob(f"*.{suffix}")]
    gap = r"my-(?:tag|project|control-plane|airflow-[a-z]+|[a-z-]+-digest)"
    gaps = {found for text in texts for found in re.findall(gap, text)}
    assert gaps == set(re.findall(r"^fill (my-\S+) ", README, re.M))


BSD_SED = """#!/bin/bash
# Like that of macOS, which takes the next argument as the ending of copies where none is joined to -i.
[[ $1 == -i?* ]] || { echo "sed: -i needs an ending" >&2; exit 1; }
exec "$SED" "$@"
"""


def test_filling_a_gap_works_with_every_sed_and_leaves_no_copies(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sed").write_text(BSD_SED)
    (tmp_path / "bin" / "sed").chmod(0o755)
    (fill,) = re.findall(r"^fill\(\) .*$", README, re.M)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, "SED": str(shutil.which("sed"))}
    command = ["bash", "-ec", f"{fill}\nfill my-project yours"]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    before, after = (
        sorted(path.relative_to(top) for path in top.rglob("*")) for top in (DEPLOY, tmp_path / "deploy")
    )
    assert before == after
    texts = [
        path.read_text() for suffix in ("yaml", "py") for path in (tmp_path / "deploy").rglob(f"*.{suffix}")
    ]
    assert not any("my-project" in text for text in texts) and any("yours" in text for text in texts)
