"""What `kubectl apply --kustomize` would send: the part of kustomize that deploy/ uses."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

APPLIED = ("flink", "flink/submit", "schedules/kubernetes/in-one-pod", "schedules/kubernetes/on-flink")
"""What deploy/README.md says to apply."""

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
                    container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def pod_spec(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return the specification of the pods that an object makes."""
    spec = found.get("spec", {})
    for step in ("jobTemplate", "spec", "template", "spec"):
        if step in spec:
            spec = spec[step]
    return spec if "containers" in spec else None


def containers(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give every container of the pods that an object makes."""
    spec = pod_spec(found) or {}
    yield from spec.get("initContainers", [])
    yield from spec.get("containers", [])


def _identity(found: dict[str, Any]) -> tuple[str, str]:
    return found["kind"], found["metadata"]["name"]


def _merge(old: Any, new: Any) -> Any:
    """Merge as kustomize does where lists hold named parts; other lists are replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        merged = copy.deepcopy(old)
        for key, value in new.items():
            merged[key] = _merge(old[key], value) if key in old else value
        return merged
    if isinstance(old, list) and new and all(isinstance(part, dict) and "name" in part for part in new):
        named = {part["name"]: part for part in old}
        for part in new:
            named[part["name"]] = _merge(named.get(part["name"], {}), part)
        return list(named.values())
    return copy.deepcopy(new)
