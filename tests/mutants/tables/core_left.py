"""Parts of core whose own tests had left something open: searches of ranks, embeddings, balls and keys."""

from tests.mutants.mutant import Mutant, Selection

_QUANTILES = "core/quantiles/ordered.py"
_SEARCH = "tests/core/quantiles/test_ordered.py"
_FAR = Selection((_SEARCH,), only="as_far_off")
_PROMISES = ("tests/pipelines/test_every_promise.py",)
_TREE, _PATHS = "core/interior_point/tree_log.py", "core/interior_point/heavy_paths.py"
_BALL = "core/interior_point/one_cluster_reduction.py"
_OF_TREES = "tests/core/interior_point/test_tree_log.py"
_PARTS = Selection((_OF_TREES,), only="a_part_of_the_failure")
_EMBEDDED = Selection((_OF_TREES,), only="levels_are_those")
_FEW = Selection((_OF_TREES,), only="nothing_is_drawn")
_WAY = Selection(("tests/core/interior_point/test_heavy_paths.py",), only="every_part_of_a_way")
_ENDS = ("tests/core/interior_point/test_one_cluster_reduction.py",)
_KEYS = ("tests/core/test_grouping.py",)
_SECURE, _OF_SECURE = "core/secure_noise.py", ("tests/core/test_secure_noise.py",)
_COINS = Selection(_OF_SECURE, only="as_many_bits")
_RUNS = Selection(_OF_SECURE, only="in_proportion")
_CELLS = ("tests/core/histogram/test_task.py",)
_MARKS = Selection(("tests/core/test_marks.py",))

SEARCHES = (
    Mutant(
        12,
        _QUANTILES,
        "a minimum is sought outside of all records",
        "(1 if self.probability == 0 else -1)",
        "(-1 if self.probability == 0 else 1)",
        Selection(_PROMISES, only="under_policies and minimum", tasks="minimum"),
    ),
    Mutant(
        12,
        _QUANTILES,
        "among few records an extreme is sought at the other end",
        "min(self.inside, order.total / 2)",
        "min(self.inside, order.total)",
        Selection((_SEARCH,), only="middle_of_few"),
    ),
    Mutant(
        12,
        _QUANTILES,
        "an extreme is sought no farther inside than the search may be off",
        "largest_error(1, params.failure) + 1",
        "largest_error(1, params.failure)",
        _FAR,
    ),
    Mutant(
        12,
        _QUANTILES,
        "an extreme is promised the error of the search alone",
        "error = inside + search.largest_error(1, self.setting.params.failure)",
        "error = search.largest_error(1, self.setting.params.failure)",
        _FAR,
    ),
    Mutant(
        12,
        _QUANTILES,
        "several ranks are promised the error of one",
        "worst = search.largest_error(ranks, params.failure)",
        "worst = search.largest_error(1, params.failure)",
        Selection((_SEARCH,), only="what_is_promised"),
    ),
    Mutant(
        12,
        "core/interior_point/ordered.py",
        "a search for an interior point is promised to need half of its records",
        "records = 2 * self._search(share)",
        "records = self._search(share)",
        Selection(("tests/core/interior_point/test_task.py",), only="one_more_record"),
    ),
)

POINTS = (
    Mutant(
        12,
        _TREE,
        "levels of TreeLog count the records at the end of a path too",
        "embed(nodes, len(trimmed) - trim)",
        "embed(nodes, len(trimmed))",
        _EMBEDDED,
    ),
    Mutant(
        12,
        _TREE,
        "TreeLog keeps its smallest records",
        "trimmed = points[trim : len(points) - trim]",
        "trimmed = points[: len(points) - trim]",
        _EMBEDDED,
    ),
    Mutant(
        12,
        _TREE,
        "every level of TreeLog may fail with all of the failure",
        "failure / (levels + 1)",
        "failure",
        _PARTS,
    ),
    Mutant(
        12,
        _TREE,
        "the base of TreeLog has half of the records that it needs",
        "fewest = 2 * math.ceil",
        "fewest = math.ceil",
        _PARTS,
    ),
    Mutant(
        12,
        _TREE,
        "the base of TreeLog is charged for a record more or less",
        'Exponential.of("point of the last universe", share, 2)',
        'Exponential.of("point of the last universe", share, 1)',
        _PARTS,
    ),
    Mutant(
        12,
        _TREE,
        "TreeLog goes on where no record is left",
        "if len(points) <= 3 * trim:",
        "if len(points) < 3 * trim:",
        _FEW,
    ),
    Mutant(
        12,
        _PATHS,
        "HeavyPaths goes on where no record is left",
        "<= 3 * self.trim * self.trees:",
        "< 3 * self.trim * self.trees:",
        _FEW,
    ),
    Mutant(
        12,
        _PATHS,
        "levels of HeavyPaths count the records at the end of a path too",
        "embed(nodes, len(trimmed) - self.trim)",
        "embed(nodes, len(trimmed))",
        _EMBEDDED,
    ),
    Mutant(
        6,
        _PATHS,
        "delta of a walk is that of one down the smallest tree",
        "max(bits_of(bits, trees))",
        "min(bits_of(bits, trees))",
        _WAY,
    ),
    Mutant(
        12,
        _PATHS,
        "trees are trimmed by less than the way back up needs",
        "            level_up.depth_needed(failure / (3 * queries)),\n",
        "",
        _WAY,
    ),
    Mutant(
        12,
        _PATHS,
        "the way back up spends twice what is left of epsilon",
        "* epsilon / (2 * queries)",
        "* epsilon / queries",
        _WAY,
    ),
    Mutant(
        12,
        _BALL,
        "the middle records are the largest ones",
        "(order.total - self.middle) // 2",
        "order.total - self.middle",
        Selection(_ENDS, only="the_middle"),
    ),
    Mutant(
        12,
        _BALL,
        "the depth of an end does not count the records on it",
        "np.minimum(upto, order.total - below)",
        "np.minimum(below, order.total - below)",
        Selection(_ENDS, only="the_middle"),
    ),
    Mutant(
        12,
        "core/threshold/interior_point.py",
        "the cut behind all examples is not tried",
        "ranks = step * np.arange(most + 1)",
        "ranks = step * np.arange(most)",
        Selection(("tests/core/threshold/test_interior_point.py",), only="behind_all"),
    ),
)

KEYS = (
    Mutant(
        12,
        "core/grouping.py",
        "of many keys some are lost",
        "labels[first : first + _AT_ONCE]",
        "labels[first : first + _AT_ONCE - 1]",
        Selection(_KEYS, only="of_many"),
    ),
    Mutant(
        12,
        "core/grouping.py",
        "keys from 2^63 on are objects where they come late",
        "if kinds == {np.dtype(np.int64), np.dtype(np.uint64)}:",
        "if False:",
        Selection(_KEYS, only="come_last"),
    ),
    Mutant(
        12,
        "core/grouping.py",
        "hours are kept as days",
        'if time == "h" else',
        'if time == "m" else',
        Selection(_KEYS, only="seconds_or_days"),
    ),
    Mutant(
        12,
        "core/labels.py",
        "of many labels some are left out",
        "self[first : first + _AT_ONCE]",
        "self[first : first + _AT_ONCE - 1]",
        Selection(("tests/core/test_labels.py",), only="objects_at_one_time"),
    ),
)

DRAWS = (
    Mutant(
        12,
        _SECURE,
        "a coin falls before the bits of a number tell on which side of its probability it is",
        ">= drawn + 1:",
        ">= drawn:",
        _COINS,
    ),
    Mutant(
        12,
        _SECURE,
        "a coin fails where the bits of a number tell nothing yet",
        "if exact.add(chance, slack) <= drawn:",
        "if exact.add(chance, slack) <= drawn + 1:",
        _COINS,
    ),
    Mutant(
        12,
        _SECURE,
        "the last integer of a run proposes the next one",
        'side="right")',
        'side="left")',
        _RUNS,
    ),
    Mutant(
        12,
        _SECURE,
        "proposals have no margin for rounding",
        "weights *= unit * (1 + 2.0**-20)",
        "weights *= unit",
        _RUNS,
    ),
    Mutant(
        12,
        "core/discrete_noise.py",
        "noise farther away than a table reaches is kept at once",
        "np.array([*kept, 0], dtype=np.int64)",
        "np.array([*kept, unit], dtype=np.int64)",
        Selection(("tests/core/test_discrete_noise.py",), only="kept_at_once"),
    ),
    Mutant(
        5,
        _SECURE,
        "a salt has half of its bytes",
        "return secrets.token_bytes(16)",
        "return secrets.token_bytes(8)",
        Selection(_OF_SECURE, only="128_bits"),
    ),
    Mutant(
        2,
        "core/ranges/methods.py",
        "the number of rows of a grid is exact where it is secret",
        'public = setting.neighbors.name == "replace_one"',
        "public = True",
        Selection(("tests/core/ranges/test_found.py",), only="unless_it_is_public"),
    ),
)

CASES = (
    Mutant(
        12,
        "core/left_out.py",
        "what is left out of alike units is wrong for three groups",
        "below(c - 2, others) if c > 1 else 0.0",
        "below(c - 2, others) if c > 2 else 0.0",
        Selection(("tests/core/test_left_out.py",), only="shares_are_those"),
    ),
    Mutant(
        12,
        "core/histogram/constraints.py",
        "known counts that only halves of records have are taken",
        "integrality=whole, ",
        "",
        Selection(("tests/core/histogram/test_constraints.py",), only="halves_of_records"),
    ),
    Mutant(
        12,
        "core/histogram/found.py",
        "a joined table has its cells as they come",
        'order = np.argsort(keys, kind="stable")',
        "order = np.arange(len(keys))",
        Selection(_CELLS, only="are_joined"),
    ),
    Mutant(
        12,
        "core/histogram/found.py",
        "ends of all cells are on the first axis",
        "(Mark.POSITION if whole else Mark.BETWEEN, axis)",
        "(Mark.POSITION if whole else Mark.BETWEEN, 0)",
        Selection(_CELLS, only="ends_of_cells"),
    ),
    Mutant(
        12,
        "core/histogram/params.py",
        "a table has any number of parts",
        "if not 1 <= self.parts <= MOST_PARTS",
        "if not 1 <= self.parts",
        Selection(_CELLS, only="refused"),
    ),
    Mutant(
        12,
        "core/times.py",
        "beside dates the upper bound of numbers may lie between two",
        "(float(low).is_integer() and float(high).is_integer())",
        "float(low).is_integer()",
        Selection(("tests/core/test_times.py",), only="refused"),
    ),
    Mutant(
        12,
        "core/labels.py",
        "labels of a run that failed stay",
        "        try:\n            yield\n        finally:\n            del held[mine]",
        "        yield\n        del held[mine]",
        Selection(("tests/core/test_labels.py",), only="that_failed"),
    ),
    Mutant(
        12,
        "core/nearest.py",
        "the word that was meant is told in small letters",
        "return by_lower[found[0]] if found",
        "return found[0] if found",
        Selection(("tests/pipelines/test_nearest.py",), only="as_it_is_written"),
    ),
    Mutant(
        12,
        "core/geography.py",
        "a released point that is far from its map is nowhere",
        "np.minimum(np.hypot(east, north), 2.0)",
        "np.hypot(east, north)",
        Selection(("tests/core/test_geography.py",), only="beyond_its_map"),
    ),
)

WRAPPED = (
    Mutant(
        1,
        "core/mechanisms/partition_selection.py",
        "exact sums that wrapped decide whether a group is there",
        "enough = noisy.sum(axis=1) >= self.threshold",
        "enough = (noisy.sum(axis=1) >= self.threshold) & (counts.sum(axis=1) > 0)",
        Selection(("tests/core/mechanisms/test_partition_selection.py",), only="wrap"),
    ),
    Mutant(
        12,
        "pipelines/simulation/simulate.py",
        "sections of a simulated run are not examined",
        "shared = None if sections_of(first) else total_in_memory(first, [block], start)",
        "shared = total_in_memory(first, [block], start)",
        Selection(("tests/pipelines/simulation/test_simulate.py",), only="long_axis"),
    ),
)

MARKS = (
    Mutant(
        12,
        "core/marks.py",
        "all coordinates of a point are on the first axis",
        "change, i) for i, each in enumerate(value)",
        "change, 0) for i, each in enumerate(value)",
        _MARKS,
    ),
    Mutant(
        12,
        "core/marks.py",
        "an end that is missing is changed",
        "if name in marks and each is not None else each",
        "if name in marks else each",
        _MARKS,
    ),
)
