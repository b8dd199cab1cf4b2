"""What network policies let through, by the rules of Kubernetes: the part of them that deploy/ uses.

A pod that no policy selects for a direction is open in it. A connection needs the leave of both ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Labels = Mapping[str, str]
Policy = dict[str, Any]
Port = tuple[int, str]

ANYWHERE = ("anywhere", 0, "any")


def inside(
    policies: Sequence[Policy], pods: Mapping[str, Labels], ports: Iterable[Port]
) -> set[tuple[str, str, int]]:
    """Return which pod reaches which on which of the ports."""
    asked = list(ports)
    return {
        (source, target, port[0])
        for source, sender in pods.items()
        for target, receiver in pods.items()
        for port in asked
        if _lets(policies, sender, "Egress", receiver, port)
        and _lets(policies, receiver, "Ingress", sender, port)
    }


def outside(policies: Sequence[Policy], pod: Labels, direction: str) -> set[tuple[str, int, str]]:
    """Return place, port and protocol of what a pod reaches, or is reached by, beyond its namespace."""
    governing = _governing(policies, pod, direction)
    if not governing:
        return {ANYWHERE}
    return {
        (place, *port)
        for policy in governing
        for rule in policy.get(direction.lower(), [])
        for place in _places(rule.get(_PEERS[direction]))
        for port in _ports(rule)
    }


_PEERS = {"Ingress": "from", "Egress": "to"}


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Return whether a selector of pods or namespaces selects what has these labels."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    expressions = selector.get("matchExpressions", [])
    assert all(expression["operator"] == "In" for expression in expressions), "no other is read here"
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions
    )


def _governing(policies: Sequence[Policy], pod: Labels, direction: str) -> list[Policy]:
    return [p for p in policies if direction in p["policyTypes"] and selects(p["podSelector"], pod)]


def _lets(policies: Sequence[Policy], pod: Labels, direction: str, peer: Labels, port: Port) -> bool:
    governing = _governing(policies, pod, direction)
    return not governing or any(
        _is_of(rule.get(_PEERS[direction]), peer) and (port in _ports(rule) or ANYWHERE[1:] in _ports(rule))
        for policy in governing
        for rule in policy.get(direction.lower(), [])
    )


def _is_of(peers: Sequence[Mapping[str, Any]] | None, pod: Labels) -> bool:
    """Return whether a pod of the namespace is among the peers; none named are all."""
    return not peers or any(
        peer.keys() == {"podSelector"} and selects(peer["podSelector"], pod) for peer in peers
    )


def _ports(rule: Mapping[str, Any]) -> list[Port]:
    ports = rule.get("ports")
    return [(port["port"], port.get("protocol", "TCP")) for port in ports] if ports else [(0, "any")]


def _places(peers: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    """Give what peers name beyond the namespace."""
    if not peers:
        yield ANYWHERE[0]
    for peer in peers or []:
        if "ipBlock" in peer:
            yield str(peer["ipBlock"]["cidr"])
        elif "namespaceSelector" in peer:
            yield str(
                peer["namespaceSelector"]
                .get("matchLabels", {})
                .get("kubernetes.io/metadata.name", "anywhere")
            )
