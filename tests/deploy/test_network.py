"""Network policies let through what a run needs, port by port, and nothing else."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import APPLIED, DEPLOY, built, containers, operated, pod_template
from tests.deploy.network import Policy, inside, outside, selects

OBJECTS = [found for folder in APPLIED for found in built(folder)]
DAGS = [pod for path in sorted(DEPLOY.rglob("*.py")) for pod in operated(path)]
PODS = [found for found in [*OBJECTS, *DAGS] if pod_template(found)]
POLICIES = {found["metadata"]["name"]: found["spec"] for found in OBJECTS if found["kind"] == "NetworkPolicy"}

(FLINK,) = (
    yaml.safe_load(found["data"]["config.yaml"])
    for found in OBJECTS
    if found["metadata"]["name"] == "shoal-flink"
)
RPC, BLOBS, REST = FLINK["jobmanager.rpc.port"], FLINK["blob.server.port"], FLINK["rest.port"]
TASKS, DATA = FLINK["taskmanager.rpc.port"], FLINK["taskmanager.data.port"]

CONNECTIONS = {
    ("taskmanager", "jobmanager", RPC),
    ("taskmanager", "jobmanager", BLOBS),
    ("jobmanager", "taskmanager", TASKS),
    ("taskmanager", "taskmanager", DATA),
    ("submission", "jobmanager", REST),
}
"""All that Flink and a submission need of each other."""

NAMES = {
    (place, 53, protocol)
    for place in ("kube-system", "169.254.169.254/32", "169.254.20.10/32")
    for protocol in ("UDP", "TCP")
}
STORAGE = {
    ("199.36.153.4/30", 443, "TCP"),
    ("169.254.169.254/32", 80, "TCP"),
    ("169.254.169.252/32", 988, "TCP"),
}
CONTROL_PLANE = {("my-control-plane/32", 443, "TCP")}

LOCAL = {50000, 8097, 8098, 8099}
"""The worker pool, and the job server's expansion, artifacts and jobs: called at localhost only."""


def component_of(found: dict[str, Any]) -> str:
    return str(labels_of(found).get("component", ""))


def labels_of(found: dict[str, Any]) -> dict[str, str]:
    return dict((pod_template(found) or {}).get("metadata", {}).get("labels", {}))


def name_of(found: dict[str, Any]) -> str:
    return f"{found['kind']}/{found['metadata']['name']}/{component_of(found)}"


def connections(policies: list[Policy]) -> set[tuple[str, str, int]]:
    """Return what pods reach of each other: on every port that any of them has, and on one that none has."""
    ports = {
        port["containerPort"] for found in PODS for c in containers(found) for port in c.get("ports", [])
    }
    asked = [(port, protocol) for port in ports | LOCAL | {40000} for protocol in ("TCP", "UDP")]
    pods = {str(at): labels_of(found) for at, found in enumerate(PODS)}
    components = [component_of(found) for found in PODS]
    return {
        (components[int(source)], components[int(target)], port)
        for source, target, port in inside(policies, pods, asked)
    }


def problems(policies: list[Policy]) -> list[str]:
    """Return where policies and what is needed differ."""
    found = [f"{connection} is open" for connection in connections(policies) - CONNECTIONS]
    found += [f"{connection} is closed" for connection in CONNECTIONS - connections(policies)]
    for pod in PODS:
        wanted = set(NAMES)
        wanted |= set() if component_of(pod) == "jobmanager" else STORAGE
        wanted |= (
            CONTROL_PLANE if any(c.get("command") == ["scheduled-run"] for c in containers(pod)) else set()
        )
        reached = outside(policies, labels_of(pod), "Egress")
        found += [f"{name_of(pod)} reaches {place}" for place in reached - wanted]
        found += [f"{name_of(pod)} does not reach {place}" for place in wanted - reached]
        found += [
            f"{name_of(pod)} is reached by {place}" for place in outside(policies, labels_of(pod), "Ingress")
        ]
    stranger = {"app": "another"}
    found += [f"a pod without labels reaches {place}" for place in outside(policies, stranger, "Egress")]
    found += [f"a pod without labels is reached by {p}" for p in outside(policies, stranger, "Ingress")]
    return found


def test_what_is_needed_is_open_and_nothing_else() -> None:
    assert problems(list(POLICIES.values())) == []


def test_every_policy_and_every_peer_selects_pods_that_there_are() -> None:
    for policy in POLICIES.values():
        rules = policy.get("ingress", []) + policy.get("egress", [])
        peers = [peer for rule in rules for peer in rule.get("from", []) + rule.get("to", [])]
        selectors = [peer["podSelector"] for peer in peers if peer.keys() == {"podSelector"}]
        for selector in [policy["podSelector"], *selectors]:
            assert any(selects(selector, labels_of(found)) for found in PODS), selector


def test_every_port_of_a_policy_is_one_that_a_container_listens_on() -> None:
    for policy in POLICIES.values():
        for rule in policy.get("ingress", []):
            for port in rule["ports"]:
                targets = [found for found in PODS if selects(policy["podSelector"], labels_of(found))]
                listening = [
                    p["containerPort"] for f in targets for c in containers(f) for p in c.get("ports", [])
                ]
                assert port["port"] in listening


def test_policies_come_with_the_namespace() -> None:
    """So that no pod can be there before them."""
    kinds = {folder: {found["kind"] for found in built(folder)} for folder in APPLIED}
    assert {"Namespace", "NetworkPolicy"} <= kinds.pop("namespace")
    assert not [folder for folder, those in kinds.items() if those & {"Namespace", "NetworkPolicy"}]


WRONG: dict[str, Callable[[dict[str, Policy]], Any]] = {
    **{f"without {name}": lambda p, name=name: p.pop(name) for name in POLICIES},  # type: ignore[misc]
    "all goes out by default": lambda p: p["shoal-nothing"].update(policyTypes=["Ingress"]),
    "all comes in by default": lambda p: p["shoal-nothing"].update(policyTypes=["Egress"]),
    "any address": lambda p: p["shoal-storage"]["egress"][0]["to"][0]["ipBlock"].update(cidr="0.0.0.0/0"),
    "any port": lambda p: p["shoal-storage"]["egress"][0].pop("ports"),
    "any name server": lambda p: p["shoal-names"]["egress"][0]["to"][0].update(namespaceSelector={}),
    "anyone submits": lambda p: p["shoal-jobmanager"]["ingress"][1].pop("from"),
    "a label that no pod has": lambda p: p["shoal-taskmanager"]["podSelector"]["matchLabels"].update(
        app="flink"
    ),
    "a pool that others call": lambda p: [
        p["shoal-taskmanager"][direction][0]["ports"].append({"port": 50000})
        for direction in ("ingress", "egress")
    ],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_policy_is_noticed(wrong: str) -> None:
    changed = copy.deepcopy(POLICIES)
    WRONG[wrong](changed)
    assert problems(list(changed.values())) != []
