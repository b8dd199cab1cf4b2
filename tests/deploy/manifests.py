"""What `kubectl apply --kustomize` would send, by the part of kustomize that deploy/ uses; pods of DAGs."""

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

APPLIED = sorted(str(path.parent.relative_to(DEPLOY)) for path in DEPLOY.rglob("kustomization.yaml"))
"""Every folder that can be applied."""

CLUSTER_WIDE = ("Namespace",)


def built(folder: str) -> list[dict[str, Any]]:
    """Return the objects of a kustomization: patched, with namespace and image filled in."""
    where = DEPLOY / folder
    settings = yaml.safe_load((where / "kustomization.yaml").read_text())
    unknown = set(settings) - {"apiVersion", "kind", "namespace", "resources", "images", "patches"}
    assert not unknown, f"{folder} uses {unknown} of kustomize, which is not read here"
    objects: list[dict[str, Any]] = []
    for resource in settings["resources"]:
        path = (where / resource).resolve()
        if path.is_dir():
            objects += built(str(path.relative_to(DEPLOY)))
        else:
            objects += list(yaml.safe_load_all(path.read_text()))
    for patch in settings.get("patches", []):
        change = yaml.safe_load((where / patch["path"]).read_text())
        (target,) = (found for found in objects if _identity(found) == _identity(change))
        objects[objects.index(target)] = _merge(target, change)
    for found in objects:
        if "namespace" in settings and found["kind"] not in CLUSTER_WIDE:
            found["metadata"]["namespace"] = settings["namespace"]
        for image in settings.get("images", []):
            for container in containers(found):
                if container["image"] == image["name"]:
                    container["image"] = image["newName"] + "".join(
                        mark + image[part]
                        for mark, part in ((":", "newTag"), ("@", "digest"))
                        if part in image
                    )
    return objects


def operated(source: Path) -> list[dict[str, Any]]:
    """Return the pods that the KubernetesPodOperators of a DAG make, as far as its text tells."""
    calls = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)]
    pods = [
        node for node in calls if isinstance(node.func, ast.Name) and node.func.id.endswith("PodOperator")
    ]
    return [_operated({str(key.arg): _value(key.value) for key in call.keywords}) for call in pods]


def pod_template(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return metadata and specification of the pods that an object makes, or of the pod that it is."""
    if found["kind"] == "Pod":
        return found
    spec = found.get("spec", {})
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template", {})
    return template if "containers" in template.get("spec", {}) else None


def pod_spec(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the specification of the pods that an object makes."""
    return (pod_template(found) or {}).get("spec")


def containers(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give every container of the pods that an object makes."""
    spec = pod_spec(found) or {}
    yield from spec.get("initContainers", [])
    yield from spec.get("containers", [])


_CONTAINER = {
    "image": "image",
    "command": "cmds",
    "args": "arguments",
    "resources": "container_resources",
    "securityContext": "container_security_context",
    "volumeMounts": "volume_mounts",
}
_SPEC = {
    "serviceAccountName": "service_account_name",
    "automountServiceAccountToken": "automount_service_account_token",
    "activeDeadlineSeconds": "active_deadline_seconds",
    "hostNetwork": "hostnetwork",
    "securityContext": "security_context",
    "volumes": "volumes",
}
_METADATA = {"name": "name", "namespace": "namespace", "labels": "labels"}


def _operated(given: dict[str, Any]) -> dict[str, Any]:
    def of(names: dict[str, str]) -> dict[str, Any]:
        return {key: given[name] for key, name in names.items() if name in given}

    container = {"name": "base", **of(_CONTAINER)}
    spec = {"restartPolicy": "Never", "containers": [container], **of(_SPEC)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": of(_METADATA), "spec": spec}


def _value(node: ast.expr) -> Any:
    """Return what an expression of literals and models of Kubernetes stands for; of others, their text."""
    if isinstance(node, ast.List):
        return [_value(part) for part in node.elts]
    if isinstance(node, ast.Dict):
        return {_value(key): _value(part) for key, part in zip(node.keys, node.values, strict=True) if key}
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("k8s.V1"):
        return {_camel(str(key.arg)): _value(key.value) for key in node.keywords}
    if isinstance(node, ast.BinOp):
        return eval(ast.unparse(node), {"__builtins__": {}})
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node)


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def _identity(found: dict[str, Any]) -> tuple[str, str]:
    return found["kind"], found["metadata"]["name"]


def _merge(old: Any, new: Any) -> Any:
    """Merge as kustomize does where lists hold named parts, the new ones first; other lists are replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        merged = copy.deepcopy(old)
        for key, value in new.items():
            merged[key] = _merge(old[key], value) if key in old else value
        return merged
    if isinstance(old, list) and new and all(isinstance(part, dict) and "name" in part for part in new):
        named = {part["name"]: part for part in old}
        merged = [_merge(named.pop(part["name"], {}), part) for part in new]
        return [*merged, *named.values()]
    return copy.deepcopy(new)
