"""Standard errors, parts of tables, other columns, names of records, rows few at a time, and costs."""

from tests.mutants.mutant import Mutant, Selection

_FOUND = "core/statistics/found.py"
_PASSES = "transforms/run_rounds.py"
_ERRORS = Selection(("tests/core/statistics/test_standard_errors.py",))
_IN_PARTS = Selection(("tests/core/statistics/test_task.py",), only="without_noise_parts")
_STRANDS = ("tests/transforms/test_run_strands.py",)

ERRORS = (
    Mutant(
        12,
        _FOUND,
        "both parts of a variance's error have one sign",
        "by_rows = (2 * about * mean - scale * middled) * of_rows",
        "by_rows = (2 * about * mean + scale * middled) * of_rows",
        _ERRORS,
    ),
    Mutant(
        12,
        _FOUND,
        "the error of a mean of two sums is that of the larger one",
        "error = noise * np.hypot(1 - part, part) / n",
        "error = noise * np.maximum(1 - part, part) / n",
        _ERRORS,
    ),
    Mutant(
        12,
        _FOUND,
        "the error of a number of rows is that of one of two sums",
        "math.sqrt(2) * noise / extent",
        "noise / extent",
        _ERRORS,
    ),
    Mutant(
        12,
        _FOUND,
        "the error of a number of units leaves one sum out",
        "math.sqrt(1 + len(others)) * noise / one",
        "math.sqrt(len(others)) * noise / one",
        _ERRORS,
    ),
    Mutant(
        12,
        _FOUND,
        "the error of a number of rows takes the noise of units once",
        "math.hypot(noise, both * of_units) / 2",
        "math.hypot(noise, of_units) / 2",
        _ERRORS,
    ),
)

TABLES = (
    Mutant(
        12,
        _FOUND,
        "quantiles of joined tables are not in the order of their groups",
        "parts[0].grouping, steps[order])",
        "parts[0].grouping, steps)",
        _IN_PARTS,
    ),
    Mutant(
        12,
        "core/statistics/by_group.py",
        "public groups are released in other parts than their totals are in",
        "shard = shard_of(keys, self.parts)\n        return [keys[shard == number] for",
        "shard = keys % self.parts\n        return [keys[shard == number] for",
        _IN_PARTS,
    ),
    Mutant(
        12,
        _FOUND,
        "quantiles of every column are read on the axis of the first",
        "axis = of.sought.axis\n",
        "axis = 0\n",
        Selection(("tests/core/statistics/test_ranks.py",), only="names_of_columns"),
    ),
)

PASSES = (
    Mutant(
        12,
        _PASSES,
        "what is drawn beside a look is not kept, so that a retry may draw again",
        "draws = not all(step.look for step in self.steps.values())",
        "draws = not any(step.look for step in self.steps.values())",
        Selection(_STRANDS, only="is_kept_also"),
    ),
    Mutant(
        4,
        _PASSES,
        "a run with the salt of an earlier one samples the same records",
        "has, block = held[number], dataclasses.replace(block, ids=renamed(block.ids, names))",
        "has = held[number]",
        Selection(_STRANDS, only="other_identities"),
    ),
)

COSTS = (
    Mutant(
        8,
        "core/budget.py",
        "what a draw adds to a run is compared with the run, not added",
        "epsilon=self.epsilon + epsilon, acc",
        "epsilon=max(self.epsilon, epsilon), acc",
        Selection(("tests/core/test_input_checks.py",), only="named_once"),
    ),
    Mutant(
        7,
        "core/policy.py",
        "of pairs that differ in one attribute the first one says how far they are apart",
        "return max(extents)",
        "return extents[0]",
        Selection(("tests/core/test_policies.py",), only="reach"),
    ),
)

_CONTRIBUTIONS, _BOUND = "transforms/contributions.py", "transforms/bound_units.py"
_KEPT = Selection(("tests/transforms/test_contributions.py",), only="few_at_a_time")
_OF_UNITS = Selection(("tests/transforms/test_bound_units.py",), only="few_at_a_time")

ROWS = (
    Mutant(
        12,
        _CONTRIBUTIONS,
        "rows beyond the first ones of a batch have the units of these",
        "else owners.take(pa.array(kept)), words)",
        "else owners.slice(0, len(kept)), words)",
        _KEPT,
    ),
    Mutant(
        12,
        _CONTRIBUTIONS,
        "rows beyond the first ones of a batch have the groups of these",
        "group = groups[start : start + ROWS][kept]",
        "group = groups[:ROWS][kept]",
        _KEPT,
    ),
    Mutant(
        12,
        _CONTRIBUTIONS,
        "only the first rows of a batch are checked",
        "add_outside(odd, bounding, some, owners)",
        "add_outside(odd, bounding, batch.slice(0, ROWS), units.slice(0, ROWS))",
        Selection(("tests/transforms/test_contributions.py",), only="odd_rows"),
    ),
    Mutant(
        12,
        _BOUND,
        "rows beyond the first ones of a batch are ordered by their times",
        "order = order_words(order_keys(some.column(bounding.order)))",
        "order = order_words(order_keys(batch.column(bounding.order)))",
        _OF_UNITS,
    ),
    Mutant(
        12,
        _BOUND,
        "units are counted for the first rows of a batch alone",
        "            add_outside(odd, bounding, some, units)",
        "            add_outside(odd, bounding, batch.slice(0, ROWS), keys.slice(0, ROWS))",
        Selection(("tests/transforms/test_bound_units.py",), only="of_counted_rows"),
    ),
)

FIGURES = (
    Mutant(
        12,
        _FOUND,
        "a mean is where the noise takes it",
        "mean = np.clip(sums / n, -center, extent - center)",
        "mean = sums / n",
        Selection(("tests/core/statistics/test_task.py",), only="out_of_bounds"),
    ),
    Mutant(
        12,
        "core/statistics/task.py",
        "sums of units are taken however far below 0 they begin",
        "max(-low, high) / grid.step >= _FAR",
        "max(low, high) / grid.step >= _FAR",
        Selection(("tests/core/statistics/test_ranks.py",), only="clamped_sums_refuse"),
    ),
)

LARGE = (
    Mutant(
        9,
        "core/graphs/cuts.py",
        "in a large graph a forest too few bounds the sensitivity",
        "forest = self.forest(changes + 1)",
        "forest = self.forest(changes)",
        Selection(("tests/core/graphs/test_cuts.py",), only="what_cuts_show"),
    ),
    Mutant(
        12,
        "transforms/join_table.py",
        "of a large public table only the last rows are joined",
        "                batches.append(batch)\n",
        "                batches = [batch]\n",
        Selection(("tests/transforms/test_preparation.py",), only="large_public_table"),
    ),
)

_INTERVALS = ("tests/core/quantiles/test_intervals.py",)

INTERVALS = (
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "an interval does not hold the value that is released with it",
        "return at, (min(low, at), max(high, at))",
        "return at, (low, high)",
        Selection(_INTERVALS, only="few_records"),
    ),
    Mutant(
        12,
        "core/quantiles/found.py",
        "quantiles that changed places keep the intervals of each other",
        "zip(sorted(lows), steps, sorted(highs), strict=True)",
        "zip(lows, steps, highs, strict=True)",
        Selection(_INTERVALS, only="ascend"),
    ),
    Mutant(
        12,
        "transforms/preparation.py",
        "a derived column may name others, and itself",
        "added[name] = rows.evaluated(node, derived=False).type",
        "added[name] = rows.evaluated(node).type",
        Selection(("tests/transforms/test_preparation.py",), only="does_not_fit"),
    ),
)

SPLITS = (
    Mutant(
        7,
        "core/quantiles/recursive.py",
        "a replaced record is one change for the splits of quantiles",
        'Splits.of("cells", splits, changes)',
        'Splits.of("cells", splits, 1)',
        Selection(("tests/core/quantiles/test_recursive.py",), only="splits_are_charged"),
    ),
)

_EXPRESSIONS = "transforms/evaluate_expression.py"
_EVALUATED = ("tests/transforms/test_evaluate_expression.py",)

EXPRESSIONS = (
    Mutant(
        12,
        _EXPRESSIONS,
        "a chain of comparisons holds where one of them does",
        "return reduce(pc.and_kleene, [_compare(*pair) for pair in pairs])",
        "return reduce(pc.or_kleene, [_compare(*pair) for pair in pairs])",
        Selection(_EVALUATED, only="chain_of"),
    ),
    Mutant(
        12,
        _EXPRESSIONS,
        "midnight is of the day before",
        "_SECOND, _DAY = 1_000_000, 86_400_000_000",
        "_SECOND, _DAY = 1_000_000, 86_400_000_001",
        Selection(_EVALUATED, only="midnight"),
    ),
)

_TURNS = Selection(("tests/transforms/test_run_rounds.py",), only="turn")

TURNS = (
    Mutant(
        12,
        "transforms/records.py",
        "all questions share one turn, whatever their aggregates take",
        "if len(large) == LARGE_IN_A_TURN:",
        "if not number + 1:",
        _TURNS,
    ),
    Mutant(
        12,
        "transforms/records.py",
        "groups of one question are read in several turns",
        "if question not in large and (",
        "if (",
        _TURNS,
    ),
    Mutant(
        12,
        "transforms/run_rounds.py",
        "what all turns make is held until the last one has been read",
        "        for turn in turns:",
        "        for turn in [[number for each in turns for number in each]]:",
        _TURNS,
    ),
)
