"""What every pod of deploy/ keeps to, as complaints: none is right. Each rule says what it asks for."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.deploy.manifests import pod_template

PINNED = re.compile(r"[a-z0-9./_-]+:[A-Za-z0-9._-]+@(sha256:[0-9a-f]{64}|my-[a-z-]+-digest)")
"""An image by tag and digest, or with the placeholder that deploy/README.md fills with the digest."""

HOST = ("hostNetwork", "hostPID", "hostIPC")
VOLUMES = {"emptyDir", "configMap", "projected"}
SECRET = re.compile(r"(?i)(secret|token|passw|credential|api[_-]?key|private[_-]?key)")
UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

Template = dict[str, Any]
Rule = Callable[[dict[str, Any], Template], Iterator[str]]


def complaints(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with the pods that an object makes; nothing for one that makes none."""
    template = pod_template(found)
    return [] if template is None else [line for rule in RULES for line in rule(found, template)]


def size(quantity: Any) -> int:
    """Return a quantity of Kubernetes, such as 2Gi, in bytes."""
    number, unit = re.fullmatch(r"(\d+)([KMG]i)?", str(quantity)).groups("")  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


def _containers(template: Template) -> list[dict[str, Any]]:
    spec = template["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def _rights_of_the_pod(found: dict[str, Any], template: Template) -> Iterator[str]:
    spec = template["spec"]
    mine = spec.get("securityContext", {})
    if mine.get("runAsNonRoot") is not True:
        yield "runAsNonRoot is not true"
    if mine.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "seccompProfile is not RuntimeDefault"
    if spec.get("automountServiceAccountToken") is not False:
        yield "automountServiceAccountToken is not false"
    if not spec.get("serviceAccountName"):
        yield "it has no service account of its own"
    for name in HOST:
        if spec.get(name):
            yield f"{name} is set"


def _rights_of_a_container(found: dict[str, Any], template: Template) -> Iterator[str]:
    of_the_pod = template["spec"].get("securityContext", {})
    for container in _containers(template):
        name, mine = container["name"], container.get("securityContext", {})
        if mine.get("runAsUser", of_the_pod.get("runAsUser", 0)) == 0 or mine.get("runAsNonRoot") is False:
            yield f"{name}: it may run as root"
        if mine.get("allowPrivilegeEscalation") is not False or mine.get("privileged"):
            yield f"{name}: allowPrivilegeEscalation is not false"
        if mine.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: readOnlyRootFilesystem is not true"
        if mine.get("capabilities") != {"drop": ["ALL"]}:
            yield f"{name}: not all capabilities are dropped"
        if mine.get("seccompProfile", {}).get("type", "RuntimeDefault") != "RuntimeDefault":
            yield f"{name}: seccompProfile is not RuntimeDefault"
        if "/tmp" not in [mount["mountPath"] for mount in container.get("volumeMounts", [])]:
            yield f"{name}: it has nowhere to write"


def _resources(found: dict[str, Any], template: Template) -> Iterator[str]:
    """CPU has no limit: a pod that is held back by one would let the clocks of blocks run out."""
    for container in _containers(template):
        requests = container.get("resources", {}).get("requests", {})
        limits = container.get("resources", {}).get("limits", {})
        if "cpu" not in requests:
            yield f"{container['name']}: requests no cpu"
        for kind in ("memory", "ephemeral-storage"):
            if kind not in limits or limits[kind] != requests.get(kind):
                yield f"{container['name']}: {kind} is not requested and limited alike"


def _volumes(found: dict[str, Any], template: Template) -> Iterator[str]:
    held = 0
    volumes = template["spec"].get("volumes", [])
    for volume in volumes:
        if not volume.keys() - {"name"} <= VOLUMES:
            yield f"volume {volume['name']}: only {', '.join(sorted(VOLUMES))} may be mounted"
        if "emptyDir" in volume:
            if "sizeLimit" not in (volume["emptyDir"] or {}):
                yield f"volume {volume['name']}: emptyDir has no sizeLimit"
            else:
                held += size(volume["emptyDir"]["sizeLimit"])
    limits = [
        c.get("resources", {}).get("limits", {}).get("ephemeral-storage", 0) for c in _containers(template)
    ]
    if held > sum(map(size, limits)):
        yield "its volumes hold more than its ephemeral-storage allows, so it is evicted before one is full"
    mounts = {
        mount["name"] for container in _containers(template) for mount in container.get("volumeMounts", [])
    }
    if mounts != {volume["name"] for volume in volumes}:
        yield "volumes and mounts differ"


def _images(found: dict[str, Any], template: Template) -> Iterator[str]:
    for container in _containers(template):
        if not PINNED.fullmatch(container["image"]):
            yield f"{container['name']}: image {container['image']} has not both tag and digest"


def _secrets(found: dict[str, Any], template: Template) -> Iterator[str]:
    """A command line and an environment are read by whoever may look at a pod."""
    for container in _containers(template):
        for word in [*container.get("command", []), *container.get("args", [])]:
            if SECRET.search(word):
                yield f"{container['name']}: argument {word} looks like a secret"
        for variable in container.get("env", []):
            if SECRET.search(variable["name"]) or "secretKeyRef" in variable.get("valueFrom", {}):
                yield f"{container['name']}: variable {variable['name']} looks like a secret"
        if container.get("envFrom"):
            yield f"{container['name']}: envFrom hides what it is given"


def _tokens(found: dict[str, Any], template: Template) -> Iterator[str]:
    """A token of Kubernetes is for the container that asks for its Job."""
    asked = [volume["name"] for volume in template["spec"].get("volumes", []) if "projected" in volume]
    for container in _containers(template):
        mounted = [mount for mount in container.get("volumeMounts", []) if mount["name"] in asked]
        if mounted and container.get("command") != ["scheduled-run"]:
            yield f"{container['name']}: it has a token of Kubernetes that it does not need"
        if not all(mount.get("readOnly") for mount in mounted):
            yield f"{container['name']}: the token is not mounted readOnly"


def _ends(found: dict[str, Any], template: Template) -> Iterator[str]:
    """What is no service ends, within a time and after a number of tries."""
    if found["kind"] == "Deployment":
        return
    if template["spec"].get("restartPolicy") != "Never":
        yield "restartPolicy is not Never, so a pod is tried again without end"
    job = found["spec"].get("jobTemplate", found)["spec"]
    if not 0 < job.get("activeDeadlineSeconds", 0) <= 86400:
        yield "activeDeadlineSeconds is not within a day"
    if found["kind"] != "Pod" and not 0 <= job.get("backoffLimit", 6) <= 3:
        yield "backoffLimit is more than 3"


def _schedule(found: dict[str, Any], template: Template) -> Iterator[str]:
    if found["kind"] == "CronJob":
        spec = found["spec"]
        if spec.get("concurrencyPolicy") != "Forbid":
            yield "concurrencyPolicy is not Forbid"
        for name in (
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
            "startingDeadlineSeconds",
            "timeZone",
        ):
            if not spec.get(name):
                yield f"{name} is not set"


RULES: tuple[Rule, ...] = (
    *(_rights_of_the_pod, _rights_of_a_container, _resources, _volumes, _images, _secrets, _tokens),
    *(_ends, _schedule),
)
