"""Mechanisms, accounting and counts that many tasks share, in cases that only a test of their own shows."""

from tests.mutants.mutant import Mutant, Selection

_OF = "core/mechanisms/"
_HEAVY = ("tests/core/mechanisms/test_heavy_path.py",)
_SPLITS = ("tests/core/mechanisms/test_splits.py",)
_PATHS = Selection(("tests/core/mechanisms/test_random_path.py",), only="proof_counts")
_NOISE = ("tests/core/mechanisms/test_calibrate_noise.py",)
_COUNTED = Selection(("tests/core/mechanisms/test_partition_selection.py",), only="is_charged")
_BOXES = ("tests/core/ranges/test_boxes.py",)
_FOUND = ("tests/core/ranges/test_found.py",)
_STORED = ("tests/core/statistics/test_stored_totals.py",)
_BUDGET = ("tests/core/test_budget.py",)
_DRAWS = Selection(("tests/core/test_draws.py",), only="of_its_kind")
_FILTER = ("tests/core/test_privacy_filter.py",)
_QUESTIONS = ("tests/core/test_questions.py",)

MECHANISMS = (
    Mutant(
        6,
        _OF + "heavy_path.py",
        "a walk that stops early keeps the delta of one that stops later",
        "self.stop - 2 - self.threshold)",
        "self.stop - self.threshold)",
        Selection(_HEAVY, only="margins"),
    ),
    Mutant(
        12,
        _OF + "heavy_path.py",
        "nodes of few records ask for less than 0",
        "[max(0, self.query(node)) for node in nodes]",
        "[self.query(node) for node in nodes]",
        Selection(_HEAVY, only="few_records"),
    ),
    Mutant(
        12,
        _OF + "heavy_path.py",
        "noise alone releases a point of few records",
        "if level is None or level >= len(nodes) or queries[level] == 0:",
        "if level is None or level >= len(nodes):",
        Selection(_HEAVY, only="few_records"),
    ),
    Mutant(
        12,
        _OF + "choosing.py",
        "nothing scores below 0 for a delta above a half",
        "        delta = min(delta, 0.5)\n",
        "",
        Selection(("tests/core/mechanisms/test_choosing.py",), only="above_a_half"),
    ),
    Mutant(
        12,
        _OF + "splits.py",
        "a replacement on a sample costs what it does on all records",
        "if not self.replaced or (self.changes, self.rate) != (2, 1.0):",
        "if not self.replaced:",
        Selection(_SPLITS, only="replacement"),
    ),
    Mutant(
        12,
        _OF + "splits.py",
        "there is one cell fewer than there may be",
        "if len(edges) - 1 + len(lows) > most:",
        "if len(edges) + len(lows) > most:",
        Selection(_SPLITS, only="limited_number"),
    ),
    Mutant(
        12,
        _OF + "random_path.py",
        "a record that comes and goes costs a path nothing",
        "steps = 3 + math.exp(rate)",
        "steps = 1 + math.exp(rate)",
        _PATHS,
    ),
    Mutant(
        6,
        _OF + "random_path.py",
        "delta of a path is that of one record",
        "n * math.exp(-rate * (self.trim - 2))",
        "math.exp(-rate * (self.trim - 2))",
        _PATHS,
    ),
    Mutant(
        12,
        _OF + "random_path.py",
        "even steps halve the weight",
        "/ math.log(4 / 3)",
        "/ math.log(2)",
        _PATHS,
    ),
    Mutant(
        6,
        _OF + "admissible.py",
        "delta of Laplace noise counts one tail",
        "(math.exp(-near) + math.exp(-far)) / 2",
        "math.exp(-near) / 2",
        Selection(_NOISE, only="both_tails"),
    ),
    Mutant(
        6,
        _OF + "calibrate_noise.py",
        "a large delta pays for moves that no delta allows",
        "alpha = min(alpha, epsilon, (epsilon - rounded) * math.exp(rounded))",
        "alpha = min(alpha, epsilon)",
        Selection(_NOISE, only="out_of_range"),
    ),
    Mutant(
        12,
        _OF + "calibrate_noise.py",
        "noise is chosen as if sensitivities did not grow",
        "return 1.0 if x >= 1 else math.exp(x - 1) / x",
        "return 1.0",
        Selection(_NOISE, only="grow_as_expected"),
    ),
    Mutant(
        12,
        _OF + "calibrate_noise.py",
        "a huge epsilon is spent whole",
        "    epsilon = min(epsilon, MOST_EPSILON)\n",
        "",
        Selection(_NOISE, only="leaves_no_noise"),
    ),
    Mutant(
        12,
        _OF + "partition_selection.py",
        "Gaussian noise of numbers of units is drawn as Laplace noise",
        "(noise.gaussian if self.gaussian else noise.laplace)(noisy",
        "noise.laplace(noisy",
        _COUNTED,
    ),
    Mutant(
        12,
        _OF + "partition_selection.py",
        "Laplace noise of numbers of units is said to deviate by its scale",
        "return self.scale if self.gaussian else math.sqrt(2) * self.scale",
        "return self.scale",
        _COUNTED,
    ),
)
"""What mechanisms cost and release at the edges of their proofs."""

ACCOUNTING = (
    Mutant(
        12,
        "core/privacy_filter.py",
        "a ledger without runs is full where its order allows nothing",
        "    if used == 0:\n        return 0.0\n",
        "",
        Selection(_FILTER, only="no_run_spends"),
    ),
    Mutant(
        12,
        "core/privacy_filter.py",
        "a run whose replacement hides nothing cannot be charged",
        "min(cost.delta, math.nextafter(1.0, 0.0))",
        "cost.delta",
        Selection(_FILTER, only="two_moves"),
    ),
    Mutant(
        12,
        "core/budget.py",
        "a draw under replacement is shown with the sensitivity to one change",
        "self, sensitivity=2 * self.sensitivity, epsilon",
        "self, epsilon",
        Selection(_FILTER, only="two_moves"),
    ),
    Mutant(
        12,
        "core/budget.py",
        "draws that are added up are said to spend all of delta",
        "basic = Spend(sum(pure), (Accountant.BASIC,), own)",
        "basic = Spend(sum(pure), (Accountant.BASIC,), delta)",
        Selection(_BUDGET, only="taken_from"),
    ),
    Mutant(
        12,
        "core/budget.py",
        "an epsilon whose power is no float is an error",
        "    if max(epsilons) > _MOST:\n        return math.inf\n",
        "",
        Selection(_BUDGET, only="added_up"),
    ),
    Mutant(
        6,
        "core/questions.py",
        "questions whose spends are added up are said to spend no delta",
        "yield Spend(epsilon, (Accountant.QUESTIONS,), used)",
        "yield Spend(epsilon, (Accountant.QUESTIONS,), 0.0)",
        Selection(_QUESTIONS, only="compose_to_more"),
    ),
    Mutant(
        12,
        "core/questions.py",
        "spends of questions are never added up",
        "    if len(draws) > 1:\n        each",
        "    if False:\n        each",
        Selection(_QUESTIONS, only="compose_to_more"),
    ),
    Mutant(
        12,
        "core/questions.py",
        "only the first of two weaker promises is told",
        'return "; and ".join(less) or None',
        "return next(iter(less), None)",
        Selection(_QUESTIONS, only="all_told"),
    ),
    Mutant(
        6,
        "core/groups.py",
        "two changes are said to spend twice the delta of one",
        "cost = Cost(spent.epsilon, spent.delta).grouped(changes)",
        "cost = Cost(changes * spent.epsilon, changes * spent.delta)",
        Selection(("tests/core/test_groups.py",), only="group_privacy_does"),
    ),
    Mutant(
        12,
        "core/draws.py",
        "Gaussian noise is drawn as Laplace noise",
        "return noise.gaussian(values.ravel(), scale)",
        "return noise.laplace(values.ravel(), scale)",
        _DRAWS,
    ),
    Mutant(
        12,
        "core/draws.py",
        "Laplace noise is said to deviate by its scale",
        "        return math.sqrt(2) * self.scale\n",
        "        return self.scale\n",
        _DRAWS,
    ),
    Mutant(
        12,
        "core/draws.py",
        "a scale below 0 adds no noise",
        "if self.scale != 0:",
        "if self.scale > 0:",
        _DRAWS,
    ),
)
"""What is said to be spent, and the noise of every draw."""

COUNTS = (
    Mutant(
        12,
        "core/ranges/found.py",
        "a rectangle holds at least what its cells seem to hold",
        "math.ceil(least - least_error)",
        "math.ceil(least)",
        Selection(_FOUND, only="both_bounds"),
    ),
    Mutant(
        12,
        "core/ranges/found.py",
        "a rectangle holds less than no record",
        "high=max(0, math.floor(most + most_error))",
        "high=math.floor(most + most_error)",
        Selection(_FOUND, only="both_bounds"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "the promised error of a cell is rounded down",
        "Promises(math.ceil(bound), math.sqrt(own))",
        "Promises(math.floor(bound), math.sqrt(own))",
        Selection(_FOUND, only="own_noise"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "the standard error of a cell is half of what it is",
        "Promises(math.ceil(bound), math.sqrt(own))",
        "Promises(math.ceil(bound), math.sqrt(own) / 2)",
        Selection(_FOUND, only="own_noise"),
    ),
    Mutant(
        12,
        "core/ranges/rounds.py",
        "a space is cut into as many cells on an axis as a plane",
        "np.rint(powers ** (2 / (axes + 2)))",
        "np.rint(powers ** (1 / 2))",
        Selection(_BOXES, only="published_sizes"),
    ),
    Mutant(
        12,
        "core/ranges/rounds.py",
        "a box of a large count below 0 is cut",
        "2 / axes * np.maximum(records, 0)",
        "2 / axes * np.abs(records)",
        Selection(_BOXES, only="published_sizes"),
    ),
    Mutant(
        12,
        "core/ranges/rounds.py",
        "a space has as many boxes on an axis as a plane",
        "math.pow(MOST_BOXES, 1 / axes)",
        "math.pow(MOST_BOXES, 1 / 2)",
        Selection(_BOXES, only="published_sizes"),
    ),
    Mutant(
        12,
        "core/ranges/boxes.py",
        "an axis of two points has one box",
        "tuple(min(most, size) for size in sizes)",
        "tuple(min(most, max(1, size - 1)) for size in sizes)",
        Selection(_BOXES, only="few_points"),
    ),
    Mutant(
        12,
        "core/statistics/stored_totals.py",
        "a value is in one section, whatever its group",
        "of.points.astype(np.uint64) ^ hashes[of.groups] * np.uint64(FACTOR)",
        "of.points.astype(np.uint64)",
        Selection(_STORED, only="sections_alike"),
    ),
    Mutant(
        12,
        "core/statistics/stored_totals.py",
        "all values of a group are in one section",
        "of.points.astype(np.uint64) ^ hashes[of.groups] * np.uint64(FACTOR)",
        "hashes[of.groups] * np.uint64(FACTOR)",
        Selection(_STORED, only="sections_alike"),
    ),
    Mutant(
        12,
        "core/statistics/totals.py",
        "a unit that is alone in two groups counts in the first",
        "new[1:] = (place[1:] != place[:-1]) | (ids[1:] != ids[:-1])",
        "new[1:] = ids[1:] != ids[:-1]",
        Selection(_STORED, only="alone_in_each"),
    ),
    Mutant(
        12,
        "core/cdf/largest_errors.py",
        "learned errors leave out that counts are rounded",
        "np.floor(sides.clip(0) + 0.5).T",
        "np.floor(sides.clip(0)).T",
        Selection(("tests/core/cdf/test_largest_errors.py",), only="half_a_record"),
    ),
    Mutant(
        12,
        "core/statistics/by_group.py",
        "a coin looks at the last of all totals",
        "return self.selection.released(aggregate.keys, aggregate.totals[:, 0], noise), {}",
        "return self.selection.released(aggregate.keys, aggregate.totals[:, -1], noise), {}",
        Selection(("tests/core/statistics/test_task.py",), only="coin_looks_at"),
    ),
)
"""Counts of rectangles, of groups and of all values: promises, sizes and sections."""
