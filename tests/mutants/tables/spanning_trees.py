"""Wrong versions of spanning forests and of what a changed weight can change."""

from tests.mutants.mutant import Mutant, Selection

_TREES = Selection(
    tuple(f"tests/core/graphs/test_{name}.py" for name in ("cuts", "edges", "by_weight")),
)

FORESTS = (
    Mutant(
        12,
        "core/graphs/components.py",
        "the lightest edges between two components are not taken by their weights",
        "first = np.sort(np.unique(keys, return_index=True)[1])",
        "first = np.unique(keys, return_index=True)[1]",
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/by_weight.py",
        "edges of one weight are not ordered by their ends",
        "ascending = np.lexsort((keys, weights))",
        'ascending = np.argsort(weights, kind="stable")',
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/by_weight.py",
        "the ids below the largest one count as nodes",
        "return None, nodes, largest + 1",
        "return None, largest + 1, largest + 1",
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/forests.py",
        "an edge of a forest may be in the next one",
        "used[forest] = True",
        "used[forest[1:]] = True",
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/replacements.py",
        "of two nodes, the one goes up that may be above the other",
        "if order[a] > order[b]:",
        "if order[a] < order[b]:",
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/replacements.py",
        "an edge without a replacement costs nothing",
        "return max(largest, cap - int(weights[alone].min())) if alone.any() else largest",
        "return largest",
        _TREES,
    ),
    Mutant(
        10,
        "core/graphs/cuts.py",
        "a forest that does not connect all bounds the sensitivity like one that does",
        "if len(forest) < len(self.tree):\n            return self.cap\n        ",
        "",
        _TREES,
    ),
    Mutant(
        12,
        "core/graphs/edges.py",
        "the lightest edges are kept in place of a forest",
        "kept = np.sort(order[spanning_forest(u, v, nodes)])",
        "kept = np.sort(order[: nodes - 1])",
        _TREES,
    ),
)
