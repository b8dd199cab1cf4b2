"""Standard errors, parts of tables, ranks of other columns, names of records, and what checks cost."""

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
