"""Wrong versions of median, minimum, triangles, mst_cost and sample_and_aggregate."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import charged, nothing_but_noise, smooth, spent

_QUANTILE = "core/quantiles/smooth.py"
_MEDIAN = "core/sample_and_aggregate/smooth_median.py"
_OUTPUTS = "core/sample_and_aggregate/outputs.py"
_CENTER = "core/sample_and_aggregate/center_of_attention.py"
_TRIANGLES = "core/graphs/triangles.py"
_COST = "core/graphs/smooth_cost.py"
_BOUND = "core/mechanisms/smooth_bound.py"
_NOISE = "core/mechanisms/smooth_noise.py"
_PAIRS = "core/graphs/common_neighbors.py"

_WEDGES = Selection(("tests/core/graphs/test_wedges.py",))

ROUNDS = (
    Mutant(
        1,
        _QUANTILE,
        "a value is kept above the smallest record",
        "released = self.smooth.value(value, bound, 0, upper, noise)",
        "released = self.smooth.value(value, bound, int(min(aggregate.keys, default=0)), upper, noise)",
        nothing_but_noise("median", "drawn and student-replace_one"),
    ),
    Mutant(
        3,
        _OUTPUTS,
        "the exact number of failed blocks decides whether a value is released",
        "if failed > self.failures.most:",
        "if self.blocks - aggregate.answered(self.blocks) > self.failures.most:",
        nothing_but_noise("sample_and_aggregate", "drawn and median"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/aggregator.py",
        "the number of failed blocks has half the noise that it needs",
        'Laplace.of("number of failed blocks", epsilon, 1, changes',
        'Laplace.of("number of failed blocks", epsilon, 0.5, changes',
        spent("sample_and_aggregate", "average"),
    ),
    Mutant(
        8,
        _OUTPUTS,
        "the number of failed blocks is not charged",
        "return (*counted, *self.value_draws(), *about)",
        "return (*self.value_draws(), *about)",
        charged("sample_and_aggregate", "average"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/median.py",
        "a median by rank has half the noise that it needs",
        'Exponential.of("median of an axis", epsilon, 2, times',
        'Exponential.of("median of an axis", epsilon, 1, times',
        spent("sample_and_aggregate", "median"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/aggregator.py",
        "methods are compared without regard to their promises",
        "(VOID if void else 0.0)",
        "0.0",
        Selection(("tests/core/sample_and_aggregate/test_aggregator.py",), "auto and not near_the_best"),
    ),
    Mutant(
        1,
        "core/sample_and_aggregate/average.py",
        "answers are clamped to their exact range",
        "low, high = min(ends), max(ends)",
        "low, high = int(points[:, axis].min()), int(points[:, axis].max())",
        nothing_but_noise("sample_and_aggregate", "drawn and average"),
    ),
    Mutant(
        1,
        "core/sample_and_aggregate/average.py",
        "answers are clamped to their exact minimum, and to a private quartile above",
        "low, high = min(ends), max(ends)",
        "low, high = int(points[:, axis].min()), max(ends)",
        nothing_but_noise("sample_and_aggregate", "drawn and average"),
    ),
    Mutant(
        1,
        _TRIANGLES,
        "a count is kept below twice the exact one",
        "most = min(_MOST, self.nodes * (self.nodes - 1) * (self.nodes - 2) // 6)",
        "most = 2 * wedges.triangles",
        nothing_but_noise("triangles", "drawn and cauchy"),
    ),
    Mutant(
        1,
        "core/graphs/spanning_cost.py",
        "a cost is kept within what the edges at hand can cost",
        "return cuts.cost + self.cap * missing, len(cuts.tree) + missing",
        "return cuts.cost + self.cap * missing, len(cuts.tree)",
        nothing_but_noise("mst_cost", "drawn and auto-auto"),
    ),
    Mutant(
        3,
        _QUANTILE,
        "the end of the window is released where there are no records",
        "value = order_statistic(aggregate, upper, self.rank)",
        "if not len(aggregate.keys):\n            return self.restored(state, upper)\n"
        "        value = order_statistic(aggregate, upper, self.rank)",
        nothing_but_noise("minimum", "drawn and student-add"),
    ),
    Mutant(
        3,
        _TRIANGLES,
        "0 is released without a draw where there are no edges",
        "wedges, bound = aggregate, self.sensitivity(aggregate)",
        "if not aggregate.sums.any():\n            return Released(0.0)\n"
        "        wedges, bound = aggregate, self.sensitivity(aggregate)",
        nothing_but_noise("triangles", "drawn and cauchy"),
    ),
    Mutant(
        3,
        _CENTER,
        "answers that all agree are released as they are",
        "center, local = attention(points, self.diameter)",
        "center, local = attention(points, self.diameter)\n        if (points == center).all():\n"
        "            return Stable(center, 0)",
        nothing_but_noise("sample_and_aggregate", "drawn and center"),
    ),
    Mutant(
        8,
        _NOISE,
        "the scale of the noise is released and not charged",
        "return (self.noise,) if self.level is None else (self.noise, self.level)",
        "return (self.noise,)",
        charged("triangles"),
    ),
    Mutant(
        8,
        "core/sample_and_aggregate/average.py",
        "quartiles are not charged",
        "return (self.sum, *quartile)",
        "return (self.sum,)",
        charged("sample_and_aggregate", "average"),
    ),
    Mutant(
        7,
        "core/sample_and_aggregate/average.py",
        "sums have noise for half the width of their range",
        "total = self.sum.add(total, noise, unit=high - low)",
        "total = self.sum.add(total, noise, unit=(high - low) / 2)",
        spent("sample_and_aggregate", "average and not one_value"),
    ),
    Mutant(
        12,
        "core/mechanisms/exponential.py",
        "choices among candidates have half the noise that is charged",
        "return noise.answer(self, lambda: noise.select(scores, self.scale * unit), unit)",
        "return noise.answer(self, lambda: noise.select(scores, self.scale * unit / 2), unit)",
        charged("sample_and_aggregate", "smooth_median"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/stable_radius.py",
        "an answer moves two ranks of the radius",
        "return int(radii[self.choice.candidate(-away, noise)])",
        "return int(radii[self.choice.candidate(-2 * away, noise)])",
        spent("sample_and_aggregate", "average"),
    ),
)

BOUNDS = (
    Mutant(
        9,
        "core/mechanisms/admissible.py",
        "noise has half the scale that is charged",
        "scale = self.scale(smooth_sensitivity)",
        "scale = self.scale(smooth_sensitivity) / 2",
        smooth("triangles"),
    ),
    Mutant(
        9,
        _QUANTILE,
        "a bound twice as smooth as is charged is left to its smoothness",
        "self.smooth.noise.beta, self.neighbors)",
        "2 * self.smooth.noise.beta, self.neighbors)",
        smooth("minimum"),
    ),
    Mutant(
        9,
        _MEDIAN,
        "the median's bound falls off twice as fast as is charged",
        "MEDIAN, self.noise.beta, one_replaced)",
        "MEDIAN, 2 * self.noise.beta, one_replaced)",
        smooth("sample_and_aggregate", "smooth_median"),
    ),
    Mutant(
        9,
        _CENTER,
        "the center's bound falls off twice as fast as is charged",
        "self.diameter, self.noise.beta\n",
        "self.diameter, 2 * self.noise.beta\n",
        smooth("sample_and_aggregate", "center_of_attention"),
    ),
    Mutant(
        9,
        _TRIANGLES,
        "the bound of a count falls off twice as fast as is charged",
        "beta = self.smooth.noise.beta",
        "beta = 2 * self.smooth.noise.beta",
        smooth("triangles"),
    ),
    Mutant(
        9,
        _COST,
        "the bound of a cost falls off twice as fast as is charged",
        "beta = self.smooth.noise.beta",
        "beta = 2 * self.smooth.noise.beta",
        smooth("mst_cost", "add_or_remove"),
    ),
    Mutant(
        9,
        _NOISE,
        "the scale is released in units of half of beta",
        "unit = self.noise.beta * _UNIT",
        "unit = self.noise.beta * _UNIT / 2",
        smooth("triangles"),
    ),
    Mutant(
        10,
        "core/order_statistics.py",
        "records more than 100 ranks away are left out",
        "near = rank.of(records), ranks_that_matter(upper, beta)",
        "near = rank.of(records), min(ranks_that_matter(upper, beta), 100)",
        smooth("median", "replace_one"),
    ),
    Mutant(
        10,
        _BOUND,
        "what takes more than 20 changes is left out",
        "if global_sensitivity * weight <= best:",
        "if global_sensitivity * weight <= best or k >= 20:",
        smooth("triangles"),
    ),
    Mutant(
        10,
        _BOUND,
        "the search ends at the first term that is no larger",
        "best = max(best, weight * local(k, best / weight))",
        "if weight * local(k, best / weight) <= best:\n            break\n"
        "        best = max(best, weight * local(k, best / weight))",
        smooth("sample_and_aggregate", "center_of_attention"),
    ),
    Mutant(
        10,
        "core/graphs/wedges.py",
        "only changes that give each pair two common neighbors in place of a half-common one are tried",
        "return [int(s) for s in np.union1d(first, second)]",
        "return [int(s) for s in np.unique(first)]",
        smooth("triangles"),
    ),
    Mutant(
        10,
        _CENTER,
        "changes that use up the answers are left out",
        "within[k] if k < len(within) else self.diameter",
        "within[k] if k < len(within) else 0",
        smooth("sample_and_aggregate", "center_of_attention"),
    ),
    Mutant(
        10,
        _BOUND,
        "domains are taken for narrow ones, from which little can come",
        "return max(0, math.ceil(math.log(max(global_sensitivity, FLOOR) / FLOOR) / beta))",
        "return max(0, math.ceil(math.log(min(max(global_sensitivity, FLOOR), 2.0**-5) / FLOOR) / beta))",
        smooth("median", "replace_one"),
    ),
    Mutant(
        12,
        "core/graphs/wedges.py",
        "common neighbors of a pair are counted with one too few",
        "return int(min(int(reached.max()), max(0, nodes - 2)))",
        "return int(min(int(reached.max()) - 1, max(0, nodes - 2)))",
        smooth("triangles"),
    ),
    Mutant(
        12,
        "core/graphs/cuts.py",
        "a tree edge's replacement is left out of the sensitivity",
        "return max(heaviest, largest_increase(self.tree, self.forest(1), self.cap))",
        "return heaviest",
        smooth("mst_cost", "add_or_remove"),
    ),
)

GRAPHS = (
    Mutant(
        12,
        "core/graphs/global_cost.py",
        "the noise of a cost is for half of the largest weight",
        "self.setting.budget.epsilon, self.setting.grid.extents[2])",
        "self.setting.budget.epsilon, self.setting.grid.extents[2] // 2)",
        spent("mst_cost", "add_or_remove"),
    ),
    Mutant(
        12,
        _PAIRS,
        "common neighbors among the heaviest are not counted",
        "for place in range(skipped):",
        "for place in range(0):",
        _WEDGES,
    ),
    Mutant(
        10,
        _PAIRS,
        "pairs are left out as if they had no common neighbors among the heaviest",
        "found.reached(np.minimum(counts + skipped, degrees[j]))",
        "found.reached(counts)",
        _WEDGES,
    ),
    Mutant(
        12,
        _PAIRS,
        "some rows of the core are in no part",
        "if number % parts == part or number == 0:",
        "if number % (parts + 1) == part or number == 0:",
        _WEDGES,
    ),
    Mutant(
        10,
        "core/graphs/wedges.py",
        "of merged findings only those of most common neighbors are kept",
        "return Wedges.of(self.corners + other.corners, common, sums)",
        "most = common == common.max(initial=0)\n"
        "        return Wedges.of(self.corners + other.corners, common[most], sums[most])",
        _WEDGES,
    ),
    Mutant(
        12,
        "core/mechanisms/smooth_noise.py",
        "a value is said to be within its released scale",
        "return scale * self._factor + 0.5",
        "return scale + 0.5",
        Selection(("tests/core/mechanisms/test_calibrate_noise.py",), "released_scale_says"),
    ),
    Mutant(
        12,
        "core/mechanisms/smooth_noise.py",
        "how far off a value is takes the released scale for the true one",
        "self.noise.tail(self.failure - one) * math.exp(unit * most)",
        "self.noise.tail(self.failure - one) * math.exp(-unit * most)",
        Selection(("tests/core/mechanisms/test_calibrate_noise.py",), "released_scale_says"),
    ),
)
