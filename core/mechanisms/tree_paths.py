"""Paths down the binary tree over 2^bits points, and the levels at which records leave such a path."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Node(NamedTuple):
    """A node on a path.

    Attributes:
        level: 0 at the root.
        prefix: first `level` bits of the points below it.
        weight: number of records below it.
        left: number of records below its left child; None at the end of a path.
    """

    level: int
    prefix: int
    weight: int
    left: int | None


def path(points: Sequence[int], bits: int, stop: int, turn: Callable[[int, int], int]) -> list[Node]:
    """Walk from the root to a leaf, or to the first node of weight at most `stop`.

    Args:
        points: ascending, each below 2^bits.
        bits: depth of the tree.
        stop: see above.
        turn: returns the child to go to, 0 or 1, given the weights of both.
    """
    nodes, low, high, prefix = [], 0, len(points), 0
    for level in range(bits):
        if high - low <= stop:
            break
        cut = bisect_left(points, (2 * prefix + 1) << (bits - level - 1), low, high)
        nodes.append(Node(level, prefix, high - low, cut - low))
        right = turn(cut - low, high - cut)
        prefix = 2 * prefix + right
        low, high = (cut, high) if right else (low, cut)
    return [*nodes, Node(len(nodes), prefix, high - low, None)]


def path_to(points: Sequence[int], bits: int, level: int, prefix: int) -> list[Node]:
    """Return the path that ends at a given node, with the weights of these records.

    Args:
        points: ascending, each below 2^bits.
        bits: depth of the tree.
        level: of the node.
        prefix: of the node.
    """
    turns = (prefix >> (level - 1 - i) & 1 for i in range(level))
    nodes = path(points, bits, -1, lambda left, right: next(turns, 0))
    return [*nodes[:level], nodes[level]._replace(left=None)]


def heavier(left: int, right: int) -> int:
    """Turn to the heavier child, and left at a tie."""
    return int(right > left)


def embed(nodes: Sequence[Node], size: int) -> list[int]:
    """Turn a path into a database of `size` levels: one for each record, the level where it leaves the path.

    Records that never leave the path count for its last level. Let `size` be the number of records less the
    weight at which paths stop. If the path of one of two neighbors then continues that of the other, their
    databases of levels are neighbors too.
    """
    levels: list[int] = []
    for node, following in pairwise(nodes):
        levels += [node.level] * min(node.weight - following.weight, size - len(levels))
    return levels + [nodes[-1].level] * (size - len(levels))
