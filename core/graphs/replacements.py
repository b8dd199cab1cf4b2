"""What removing an edge of a minimum spanning forest costs."""

import numpy as np

from core.graphs.by_weight import ByWeight


def largest_increase(tree: ByWeight, second: ByWeight, cap: int) -> int:
    """Return the largest difference of the weights of a tree edge and of its replacement; at least 0.

    If a tree edge is removed, its tree splits into two parts. The replacement is the lightest edge outside of
    the forest that connects these parts, or weighs `cap` if there is none. It is the lightest edge of a cut
    of the graph without the forest, so it belongs to the second forest. The edges of that forest are taken
    from the lightest up. Each closes a cycle with the tree path between its ends. It is the replacement of
    those edges of the path that have none yet. Edges that have their replacement are contracted.

    A tree is rooted by removing leaves one after another. Of two nodes, the one that was removed first is not
    above the other. So the path between them is found by going up from that one, again and again. For each
    number of a node, this takes 13 bytes, and a step of the interpreter or some.

    Args:
        tree: the minimum spanning forest of a graph.
        second: that of all other edges.
        cap: largest weight.
    """
    size = tree.numbers
    degrees, above, weights = (np.zeros(size, dtype=kind) for kind in (np.int32, np.int32, np.uint32))
    for u, v, own in tree:
        for end, other in ((u, v), (v, u)):
            np.add.at(degrees, end, 1)
            np.bitwise_xor.at(above, end, other)  # of all neighbors: of a leaf, that is the only one
            np.bitwise_xor.at(weights, end, own)
    order, up, weight = degrees.data, above.data, weights.data
    removed = 0
    for leaf in range(size):
        node = leaf
        while order[node] == 1:
            higher = up[node]
            order[node], removed = removed - size, removed + 1  # below 0; what stays at 0 is a root
            order[higher] -= 1
            up[higher] ^= node
            weight[higher] ^= weight[node]
            node = higher
    covered, largest = bytearray(size), 0

    def uncovered(node: int) -> int:
        while covered[node]:
            higher = up[node]
            if covered[higher]:
                higher = up[node] = up[higher]
            node = higher
        return node

    for window in second:
        for a, b, heavier in zip(*(ends.tolist() for ends in window), strict=True):
            a, b = uncovered(a), uncovered(b)
            while a != b:
                if order[a] > order[b]:
                    a, b = b, a
                largest = max(largest, heavier - weight[a])
                covered[a] = 1
                a = uncovered(up[a])
    alone = (degrees < 0) & (np.frombuffer(covered, dtype=np.uint8) == 0)
    return max(largest, cap - int(weights[alone].min())) if alone.any() else largest
