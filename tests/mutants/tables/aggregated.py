"""Aggregators of the blocks' answers, rounds, smooth noise, and the ledger that runs are charged to."""

from tests.mutants.mutant import Mutant, Selection

_AVERAGE, _CENTER, _CLUSTER = (
    f"core/sample_and_aggregate/{name}.py" for name in ("average", "center_of_attention", "stable_point")
)
_TASK, _MEDIAN = (f"tests/core/sample_and_aggregate/test_{name}.py" for name in ("task", "median"))
_LEDGER = "tests/pipelines/ledger/test_ledger.py"
_SMOOTH, _NUMBERS = (
    "core/mechanisms/smooth_noise.py",
    Selection(("tests/core/mechanisms/test_smooth_noise.py",)),
)
_PLAIN = Selection(("tests/core/test_rounds.py",), only="like_any_other")
_QUANTILE, _EMBEDDED = "core/quantiles/smooth.py", "transforms/embedded_runner.py"
_RANKS = Selection(("tests/core/quantiles/test_smooth.py",), only="ranks_that_matter")
_KEPT = Selection(("tests/transforms/test_embedded_runner.py",), only="goes_back")
_LEVELS = Selection(("tests/core/graphs/test_task.py",), only="noisy_level")
_SUMS, _ADDED = "core/aggregate.py", Selection(("tests/core/test_aggregate.py",), only="large or int64")
_EVERY = ("tests/transforms/test_every_aggregate.py",)
_CHARGED = Selection((_TASK,), only="cluster_is_charged")

ANSWERS = (
    Mutant(
        12,
        "core/sample_and_aggregate/aggregator.py",
        "noise in a universe of several axes is promised to vanish as on one",
        "return min(1.0, widths * noise.scale",
        "return min(1.0, noise.scale",
        Selection(("tests/core/sample_and_aggregate/test_aggregator.py",), only="nothing_vanishes"),
    ),
    Mutant(
        12,
        _AVERAGE,
        "noisy quartiles that change places make a range of negative width",
        "low, high = min(ends), max(ends)",
        "low, high = ends",
        Selection((_TASK,), only="stays_in_its_domain"),
    ),
    Mutant(
        12,
        _AVERAGE,
        "a mean may be beyond its domain by where its range begins",
        "/ self.blocks), 0), high - low) + low",
        "/ self.blocks), 0), high) + low",
        Selection((_TASK,), only="stays_in_its_domain"),
    ),
    Mutant(
        1,
        _AVERAGE,
        "a mean in a range of one step has no noise",
        "if high > low:\n                total",
        "if high > low + 1:\n                total",
        Selection((_TASK,), only="wherever_its_range"),
    ),
    Mutant(
        7,
        "core/sample_and_aggregate/aggregator.py",
        "a radius is charged for one of two answers that change",
        'Exponential.of("radius", epsilon, 2, changes=self.changes)',
        'Exponential.of("radius", epsilon, 2)',
        Selection((_TASK,), only="all_answers_that_change"),
    ),
    Mutant(
        2,
        "core/sample_and_aggregate/median.py",
        "a median is chosen among the cells up to the largest answer",
        "choose_by_rank(counts, cells.last, MEDIAN, self.choice, noise)",
        "choose_by_rank(counts, int(counts.keys.max()), MEDIAN, self.choice, noise)",
        Selection((_MEDIAN,), only="moves_every_score"),
    ),
    Mutant(
        10,
        "core/sample_and_aggregate/smooth_median.py",
        "no answer is thought to move beyond the largest one",
        "smooth_sensitivity(counts, extent, MEDIAN",
        "smooth_sensitivity(counts, int(counts.keys.max()), MEDIAN",
        Selection((_TASK,), only="smooth_median_draws"),
    ),
    Mutant(
        12,
        _CENTER,
        "the center on a line is an answer in the shortest interval, which may be at its end",
        "(line[start] + line[start + t0 - 1]) // 2",
        "line[start + t0 // 2]",
        Selection(
            ("tests/core/sample_and_aggregate/test_center_of_attention.py",),
            only="sensitivities_by_definition",
        ),
    ),
    Mutant(
        7,
        _CLUSTER,
        "a replaced answer leaves no box of a cluster",
        'one_replaced = self.setting, Neighbors("replace_one")',
        'one_replaced = self.setting, Neighbors("add_or_remove_one")',
        _CHARGED,
    ),
    Mutant(
        7,
        _CLUSTER,
        "a cluster is charged for one of two answers that change",
        "Practical(inner, changes=self.changes,",
        "Practical(inner, changes=1,",
        _CHARGED,
    ),
    Mutant(
        1,
        "core/sample_and_aggregate/stable_radius.py",
        "no radius is released that is larger than the exact one of all answers",
        "return int(radii[self.choice.candidate(-away, noise)])",
        "return int(min(radii[self.choice.candidate(-away, noise)], math.isqrt(int(squares[-1])) + 1))",
        Selection((_TASK,), only="draws_alone"),
    ),
    Mutant(
        1,
        "core/sample_and_aggregate/outputs.py",
        "a failed block counts as the exact median of the others",
        "aggregate.table(self.blocks, np.array(self.default))",
        "aggregate.table(self.blocks, np.median(aggregate.points, axis=0).astype(int))",
        Selection(("tests/core/sample_and_aggregate/test_aggregator.py",), only="failed_block_counts"),
    ),
    Mutant(
        1,
        _AVERAGE,
        "a radius is about the answer of the first block",
        "self.radius.release(points, value, noise)",
        "self.radius.release(points, points[0], noise)",
        Selection((_TASK,), only="radius_is_about"),
    ),
    Mutant(
        9,
        "core/sample_and_aggregate/smooth_median.py",
        "a median of equal answers has no noise",
        "MEDIAN)], smooth, noise)",
        "MEDIAN)], smooth if len(counts.keys) > 1 else 2.0**-40, noise)",
        Selection((_TASK,), only="smooth_median_draws"),
    ),
)

LEDGERS = (
    Mutant(
        12,
        "pipelines/ledger/ledger.py",
        "another job takes the run id of one that is released",
        "if known.job != job.hash():\n        raise",
        "if known.job != job.hash() and known.release is None:\n        raise",
        Selection((_LEDGER,), only="belongs_to_one_job"),
    ),
    Mutant(
        8,
        "pipelines/ledger/ledger.py",
        "a charge of one folder serves one that has no id",
        "if known.release is None and known.output_id not in (None, output_id):",
        "if known.release is None and output_id and known.output_id not in (None, output_id):",
        Selection((_LEDGER,), only="folder_that_it_names"),
    ),
)

SMOOTH = (
    Mutant(
        1,
        "core/graphs/smooth_cost.py",
        "the exact scale of the noise of a cost is released",
        "scale = self.smooth.scale(bound, noise)",
        "scale = self.smooth.noise.scale(bound)",
        _LEVELS,
    ),
    Mutant(
        1,
        "core/graphs/smooth_cost.py",
        "how far off a cost is follows from the exact scale of its noise",
        "self.smooth.within(scale)",
        "self.smooth.within(self.smooth.noise.scale(bound))",
        _LEVELS,
    ),
    Mutant(
        10,
        "core/graphs/smooth_cost.py",
        "no change of a weight moves the cost",
        "self.cap if len(cuts.tree) else 0, beta",
        "0, beta",
        Selection(("tests/core/graphs/test_task.py",), only="missing_edge"),
    ),
    Mutant(
        12,
        "core/graphs/smooth_cost.py",
        "a tree costs no more than one edge may",
        "0, self.cap * edges, noise)",
        "0, self.cap, noise)",
        Selection(("tests/core/graphs/test_task.py",), only="without_noise"),
    ),
    Mutant(
        10,
        _QUANTILE,
        "a wide domain is looked at as a narrow one is",
        "ranks_that_matter(self.size - 1,",
        "ranks_that_matter(1,",
        _RANKS,
    ),
    Mutant(
        12,
        _QUANTILE,
        "half of the records that may wait are said to be all",
        "return (2 * self._matter + 1,)",
        "return (self._matter + 1,)",
        _RANKS,
    ),
    Mutant(
        12,
        _SMOOTH,
        "a smooth value may be above its range",
        "return min(max(released, least), most)",
        "return max(released, least)",
        _NUMBERS,
    ),
    Mutant(
        12,
        _SMOOTH,
        "a smooth value may be below its range",
        "return min(max(released, least), most)",
        "return min(released, most)",
        _NUMBERS,
    ),
    Mutant(
        12,
        _SMOOTH,
        "noise is never smaller than that of one step",
        "self.noise.add([value], smooth, noise)",
        "self.noise.add([value], max(1.0, smooth), noise)",
        _NUMBERS,
    ),
    Mutant(
        12,
        _SMOOTH,
        "the noise of a value takes all of the failure probability beside that of its scale",
        "self.noise.tail(self.failure - one)",
        "self.noise.tail(self.failure)",
        _NUMBERS,
    ),
)

ROUNDS = (
    Mutant(
        12,
        "core/rounds.py",
        "a round that could have sections is examined in one",
        'return int(getattr(round_, "sections", 0))',
        'return int(hasattr(round_, "sections"))',
        _PLAIN,
    ),
    Mutant(
        12,
        "core/rounds.py",
        "a round without a release of parts is released in parts",
        'if hasattr(round_, "release_part") else 1',
        'if hasattr(round_, "parts") else 1',
        _PLAIN,
    ),
    Mutant(
        12,
        _EMBEDDED,
        "free memory is kept",
        "            give_back()  #",
        "            pass  #",
        _KEPT,
    ),
    Mutant(
        12,
        _EMBEDDED,
        "free memory goes back at each stage of a short run",
        "self._gave_back > _GIVE_BACK_EVERY",
        "self._gave_back < _GIVE_BACK_EVERY",
        _KEPT,
    ),
    Mutant(
        11,
        _SUMS,
        "a large sum lacks the last key of each of its parts",
        "*np.searchsorted(self.keys, cuts), len(self)]",
        "*np.searchsorted(self.keys, cuts), len(self) - 1]",
        _ADDED,
    ),
    Mutant(
        11,
        _SUMS,
        "keys between two slices of a large sum are in both",
        "itertools.pairwise(ends))",
        "((max(0, a - 1), b) for a, b in itertools.pairwise(ends)))",
        _ADDED,
    ),
    Mutant(
        12,
        _SUMS,
        "large sums are sorted at once",
        "if slices <= len(filled):",
        "if filled:",
        _ADDED,
    ),
    Mutant(
        11,
        _SUMS,
        "records that came out negative count each key once",
        "if records != len(keys):",
        "if records > len(keys):",
        _ADDED,
    ),
    Mutant(
        12,
        _SUMS,
        "slices of a large sum are cut by its first part alone",
        "for part in filled]))\n        cuts",
        "for part in filled[:1]]))\n        cuts",
        _ADDED,
    ),
    Mutant(
        11,
        _SUMS,
        "a key that does not ascend may be in two slices of a large sum",
        "added.keys[0] <= keys[end - 1]",
        "added.keys[0] < keys[0]",
        _ADDED,
    ),
)

ADDED = (
    Mutant(
        12,
        "transforms/merge_aggregates.py",
        "sums that wait in a file are lost once another aggregate is added",
        "        del accumulator[first:]\n",
        "        accumulator.clear()\n",
        Selection(_EVERY, only="no_tree"),
    ),
    Mutant(
        12,
        "core/sections.py",
        "sections of more than two workers lose the counts of the others",
        "for part in parts]))\n\n    def split",
        "for part in parts[:2]]))\n\n    def split",
        Selection(_EVERY, only="merged_at_once"),
    ),
    Mutant(
        12,
        "core/stored.py",
        "the sum of stored counts has the length of its first part",
        "self.sizes + other.sizes, self.store",
        "self.sizes, self.store",
        Selection(_EVERY, only="any_grouping"),
    ),
    Mutant(
        12,
        "core/input_checks.py",
        "counts of the checks are those of the last part",
        "outside = reduce(lambda a, b: a + b, [part.outside for part in parts])",
        "outside = parts[-1].outside",
        Selection(_EVERY, only="merged_at_once"),
    ),
    Mutant(
        12,
        "core/aggregate.py",
        "which record of an identity is in a sample depends on the order of workers",
        "np.lexsort((self.points, self.ids, self.hashes))",
        "np.lexsort((self.ids, self.hashes))",
        Selection(_EVERY, only="any_grouping"),
    ),
    Mutant(
        12,
        "core/statistics/stored_totals.py",
        "stored groups have as many distinct values as in their first section",
        "self.distinct + other.distinct,",
        "self.distinct,",
        Selection(_EVERY, only="any_grouping"),
    ),
    Mutant(
        12,
        "core/statistics/totals.py",
        "groups have the totals of one of their parts",
        "np.add.reduceat(totals, first, axis=0), merged",
        "totals[first], merged",
        Selection(_EVERY, only="any_grouping"),
    ),
)
