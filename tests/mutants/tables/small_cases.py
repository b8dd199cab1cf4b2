"""Promises, shares and choices of tasks that only a small case of their own shows."""

from tests.mutants.mutant import Mutant, Selection

_GRAPHS = ("tests/core/graphs/test_task.py",)
_OTHERS = Selection(("tests/core/graphs/test_wedges.py",), only="out_of_the_core")
_LLOYD = ("tests/core/centers/test_lloyd.py",)
_LEVEL_UP = ("tests/core/interior_point/test_level_up.py",)
_POINTS = ("tests/core/interior_point/test_task.py",)
_RANKS = Selection(("tests/core/threshold/test_interior_point.py",), only="as_far_apart")
_NEAR = Selection(("tests/core/threshold/test_ranks.py",), only="values_are_near")
_COMMON = "core/graphs/common_neighbors.py"
_ROWS, _RANKED = "core/graphs/ranked.py", Selection(("tests/core/graphs/test_ranked.py",))
_LEARNER = "core/threshold/interior_point.py"

GRAPHS = (
    Mutant(
        12,
        "core/graphs/triangles.py",
        "a replaced edge is one change of triangles",
        "            self.setting.neighbors.changes,\n",
        "            1,\n",
        Selection(_GRAPHS, only="two_changes_of_triangles"),
    ),
    Mutant(
        12,
        "core/graphs/spanning_cost.py",
        "the scale of a cost's noise is in steps",
        "None if steps is None else steps * step",
        "steps",
        Selection(_GRAPHS, only="in_data_units"),
    ),
    Mutant(
        12,
        "core/graphs/spanning_cost.py",
        "a plan says that it hides weights alone where it hides edges",
        'one row; its nodes, and every edge, are public" if self.public',
        'one row; its nodes, and every edge, are public" if not self.public',
        Selection(_GRAPHS, only="hides_weights"),
    ),
    Mutant(
        12,
        "core/graphs/task.py",
        "secret pairs of node ids are taken for a policy of edges",
        "if setting.neighbors.policy is not None:",
        "if False:",
        Selection(_GRAPHS, only="say_so"),
    ),
    Mutant(
        10,
        _COMMON,
        "a hub with an edge to each node has no pair without common neighbors",
        "if degree + int(degrees[-1]) > nodes:",
        "if degree + int(degrees[-1]) >= nodes:",
        _OTHERS,
    ),
    Mutant(
        10,
        _COMMON,
        "pairs without common neighbors end one sum too early",
        "if degree + int(degrees[i + 1]) <= max(best, enough):",
        "if degree + int(degrees[i + 1]) <= max(best, enough) + 1:",
        _OTHERS,
    ),
    Mutant(
        12,
        _ROWS,
        "a node begins in its part where the one before it does",
        "starts[first:end] = ends[first:end] - degrees[first:end] - before",
        "starts[first:end] = np.maximum(ends[first:end] - 2 * degrees[first:end] - before, 0)",
        _RANKED,
    ),
    Mutant(
        12,
        _ROWS,
        "a node with more neighbors than a part has no part",
        'end = max(first + 1, int(np.searchsorted(ends, before + _ROWS, side="right")))',
        'end = max(first + 2, int(np.searchsorted(ends, before + _ROWS, side="right")))',
        _RANKED,
    ),
    Mutant(
        12,
        "core/graphs/paths.py",
        "of paths that end at a neighbor only one to each is counted",
        "closed += int(batch.counters()[wanted].sum())",
        "closed += int((batch.counters()[wanted] > 0).sum())",
        Selection(("tests/core/graphs/test_wedges.py",), only="random_graphs"),
    ),
    Mutant(
        12,
        "core/distinct.py",
        "a value at the end of a part is kept twice",
        "not end or part[0] != values[end - 1]",
        "True",
        Selection(("tests/core/test_distinct.py",)),
    ),
    Mutant(
        12,
        "transforms/run_rounds.py",
        "shards without records are not there, so that engines show which ones have none",
        "totals[key] = add.add_input(",
        "if shards > 1 and not len(part):\n                        continue\n"
        "                    totals[key] = add.add_input(",
        Selection(("tests/transforms/test_merge_aggregates.py",)),
    ),
)

CENTERS = (
    Mutant(
        12,
        "core/centers/parts.py",
        "the last part of an axis reaches beyond it",
        "high = np.minimum(low + self._widths - 1, self._extents)",
        "high = low + self._widths - 1",
        Selection(_LLOYD, only="found_again"),
    ),
    Mutant(
        12,
        "core/centers/parts.py",
        "numbers of parts wrap",
        "math.prod(self._numbers) < 1 << 62",
        "math.prod(self._numbers) < 1 << 70",
        Selection(_LLOYD, only="not_numbered"),
    ),
    Mutant(
        12,
        "core/centers/parts.py",
        "a center without records moves by noise alone",
        "        shifts[counts == 0] = 0.0\n",
        "",
        Selection(_LLOYD, only="without_records"),
    ),
    Mutant(
        12,
        "core/centers/iteration.py",
        "a count that may be noise alone moves a center",
        "smallest = 3 * self.shares",
        "smallest = 0 * self.shares",
        Selection(_LLOYD, only="without_records"),
    ),
    Mutant(
        12,
        "core/centers/iteration.py",
        "in L1 the rounding of shares is charged as in L2",
        "(k if self.l1 else math.sqrt(k))",
        "math.sqrt(k)",
        Selection(_LLOYD, only="rounding_of_many"),
    ),
)

POINTS = (
    Mutant(
        12,
        "core/interior_point/level_up.py",
        "choosing a node spends twice what it is given",
        "Cost(node_epsilon, delta).per_change(2)",
        "Cost(node_epsilon, delta).per_change(1)",
        Selection(_LEVEL_UP, only="what_they_are_given"),
    ),
    Mutant(
        12,
        "core/interior_point/level_up.py",
        "the last leaf of the left half is no candidate",
        "{first, last, middle, max(first, middle - 1)}",
        "{first, last, middle}",
        Selection(_LEVEL_UP, only="any_of_the_four"),
    ),
    Mutant(
        12,
        "core/interior_point/level_up.py",
        "a leaf may fail with more than half of the failure",
        "math.log(6 / failure)",
        "math.log(1 / failure)",
        Selection(_LEVEL_UP, only="deep_enough"),
    ),
    Mutant(
        12,
        "core/interior_point/heavy_paths.py",
        "the last tree has a level fewer",
        "(last + 1) * splits",
        "last * splits",
        Selection(("tests/core/interior_point/test_heavy_paths.py",), only="some_level"),
    ),
    Mutant(
        12,
        "core/interior_point/ordered.py",
        "a search may end beyond all of as many records as it needs",
        "largest_error(1, self.setting.params.failure) + 1",
        "largest_error(1, self.setting.params.failure)",
        Selection(_POINTS, only="one_more_record"),
    ),
    Mutant(
        12,
        "core/interior_point/ordered.py",
        "a search is for the lower third",
        "order.total / 2",
        "order.total / 3",
        Selection(_POINTS, only="for_the_median"),
    ),
    Mutant(
        12,
        "core/interior_point/one_cluster_reduction.py",
        "the ball may fail with all of the failure",
        "OneCluster(target, setting.params.failure / 2)",
        "OneCluster(target, setting.params.failure)",
        Selection(("tests/core/interior_point/test_one_cluster_reduction.py",), only="other_half"),
    ),
    Mutant(
        12,
        "core/interior_point/exponential.py",
        "half of the values near a median are said to be held",
        "(2 * (self.far or 0) + 1,)",
        "((self.far or 0) + 1,)",
        _NEAR,
    ),
    Mutant(
        12,
        "core/threshold/ranks.py",
        "half of the values near a rank are said to be held",
        "return (2 * self.learner.window,)",
        "return (self.learner.window,)",
        _NEAR,
    ),
    Mutant(
        12,
        "core/threshold/learner.py",
        "a label below a half counts as 1",
        "max(1, -(-self.setting.grid.extents[1] // 2))",
        "max(1, self.setting.grid.extents[1] // 2)",
        Selection(("tests/core/threshold/test_task.py",), only="below_a_half"),
    ),
    Mutant(
        12,
        _LEARNER,
        "noise of the number of examples moves ranks apart where they are promised to be near",
        "self.step * MOST_RANKS - 2 * self.total_margin",
        "self.step * MOST_RANKS",
        _RANKS,
    ),
    Mutant(
        12,
        _LEARNER,
        "the smallest alpha does not allow for ranks that are apart",
        "beyond / (alpha - 1 / (2 * MOST_RANKS))",
        "beyond / alpha",
        _RANKS,
    ),
)
