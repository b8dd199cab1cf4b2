"""Promises of published constants, of bounds and of what tasks share, that only a test of their own shows."""

from tests.mutants.mutant import Mutant, Selection

_SAMPLES = ("tests/core/test_sampling.py",)
_HELD = Selection(("tests/core/test_held.py",))
_PAPER = ("tests/core/one_cluster/paper/test_method.py",)
_RADIUS = ("tests/core/one_cluster/paper/test_good_radius.py",)
_BOUNDS = ("tests/core/statistics/test_bounds.py",)
_GUARANTEE = ("tests/core/one_cluster/practical/test_guarantee.py",)
_CENTER, _OF_PAPER = "core/one_cluster/paper/good_center.py", "core/one_cluster/paper/method.py"
_OF_STATISTICS, _OF_PRACTICAL = "core/statistics/bounds.py", "core/one_cluster/practical/guarantee.py"

SHARED = (
    Mutant(
        12,
        "core/sampling.py",
        "a sample is chosen by what is no pseudorandom function",
        "return siphash(ids, salt, tweak) <",
        "return scramble(ids, salt, tweak) <",
        Selection(_SAMPLES, only="chosen_by"),
    ),
    Mutant(
        12,
        "core/sampling.py",
        "no secret difference follows a permutation",
        "        part ^= after\n",
        "",
        Selection(_SAMPLES, only="splitmix"),
    ),
    Mutant(
        12,
        "core/sampling.py",
        "no secret difference precedes a permutation",
        "np.bitwise_xor(words[start : start + _SCRAMBLED], before, out=part)",
        "part[:] = words[start : start + _SCRAMBLED]",
        Selection(_SAMPLES, only="splitmix"),
    ),
    Mutant(
        12,
        "core/held.py",
        "rounds hold what the smallest of them holds",
        "max(counts, default=0)",
        "min(counts, default=0)",
        _HELD,
    ),
    Mutant(
        12,
        "core/held.py",
        "one kind alone of what grows is named",
        "tuple(dict.fromkeys(phrase for phrase in growing if phrase))",
        "tuple(dict.fromkeys(phrase for phrase in growing if phrase))[:1]",
        _HELD,
    ),
    Mutant(
        12,
        "core/policy.py",
        "a distance of one step more than an axis has is served",
        "            if theta > extent:",
        "            if theta > extent + 1:",
        Selection(("tests/core/test_policies.py",), only="refused_in_one"),
    ),
    Mutant(
        12,
        "core/decimals.py",
        "an end at a grid point far from 0 leaves it out",
        "max(_NEAR, 2 * (math.ulp(value) + math.ulp(lower)) / step)",
        "_NEAR",
        Selection(("tests/core/test_domain.py", "tests/core/ranges/test_found.py"), only="far_from_0"),
    ),
    Mutant(
        12,
        "pipelines/answers/sample_and_aggregate.py",
        "errors of the mean of clamped answers are said to hold that of all",
        "' clamped to their noisy quartiles' * loose",
        "''",
        Selection(("tests/pipelines/answers/test_pictures.py",), only="errors_of_a_value"),
    ),
    Mutant(
        12,
        "core/cdf/ordered.py",
        "a random range has the noise of one end",
        "average = 2 * (self.size - 1)",
        "average = (self.size - 1)",
        Selection(("tests/core/cdf/test_found.py",), only="random_range"),
    ),
)

PAPER = (
    Mutant(
        12,
        "core/one_cluster/paper/noisy_average.py",
        "rounding to coarse units makes no record longer",
        "reach = radius / unit + rounding",
        "reach = radius / unit",
        Selection(("tests/core/one_cluster/paper/test_noisy_average.py",), only="coarse_units"),
    ),
    Mutant(
        12,
        "core/one_cluster/paper/good_radius.py",
        "as many records as the target are too few",
        "if aggregate.total < t:",
        "if aggregate.total <= t:",
        Selection(_RADIUS, only="public_number"),
    ),
    Mutant(
        12,
        "core/one_cluster/paper/good_radius.py",
        "a point that lacks a few records has no radius 0",
        "zero > t - 2 * scales.gamma - scales",
        "zero > t - scales",
        Selection(_RADIUS, only="lacks_few"),
    ),
    Mutant(
        12,
        "core/one_cluster/paper/good_radius.py",
        "records at a point have noise for half of their sensitivity",
        "self.epsilon / 2, 2)",
        "self.epsilon / 2, 1)",
        Selection(_RADIUS, only="sensitivity_two"),
    ),
    Mutant(
        12,
        _CENTER,
        "so few shifts are tried that most cut the cluster",
        "enough = math.log(1 / self.beta) / 0.99 ** self.image(records)",
        "enough = math.log(1 / self.beta)",
        Selection(_PAPER, only="some_shift"),
    ),
    Mutant(
        12,
        _CENTER,
        "the box is one of the first shift",
        "self._cells(image, side, first), noise)",
        "self._cells(image, side, 0), noise)",
        Selection(_PAPER, only="chosen_shift"),
    ),
    Mutant(
        12,
        _CENTER,
        "boxes are twice as wide as published",
        "self._box(aggregate, 150 * state.half_steps, noise)",
        "self._box(aggregate, 300 * state.half_steps, noise)",
        Selection(_PAPER, only="chosen_shift"),
    ),
    Mutant(
        12,
        _OF_PAPER,
        "each of nine events may fail with all of the failure",
        "_EVENTS = 9",
        "_EVENTS = 1",
        Selection(_PAPER, only="nine_events"),
    ),
    Mutant(
        12,
        _OF_PAPER,
        "a box is sought that holds all of the target",
        "target - 3 * self._radius_scales.gamma",
        "target",
        Selection(_PAPER, only="nine_events"),
    ),
    Mutant(
        12,
        _OF_PAPER,
        "the radius is promised to lose a third of what it may",
        "missing = 3 * self._radius_scales.gamma",
        "missing = self._radius_scales.gamma",
        Selection(_PAPER, only="nine_events"),
    ),
)

BOUNDS = (
    Mutant(
        12,
        _OF_STATISTICS,
        "whole noise is bounded as if it were none",
        "math.hypot(*scales) + steps",
        "math.hypot(*scales)",
        Selection(_BOUNDS, only="whole_noise"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "each column may fail with all of the failure",
        "self.groups * grid.dimension",
        "self.groups",
        Selection(_BOUNDS, only="fail_together"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "a sum far from 0 is bounded without the noise of its rows",
        "weight, unit = abs(low + quantity.center), max",
        "weight, unit = abs(quantity.center), max",
        Selection(_BOUNDS, only="fail_together"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "a mean is bounded without the noise of its rows",
        "float(quantity.bound), quantity.extent / 2",
        "0.0, quantity.extent / 2",
        Selection(_BOUNDS, only="fail_together"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "a number of units is bounded by the noise of one sum fewer",
        "return self._of_sums(place + 1,",
        "return self._of_sums(place,",
        Selection(_BOUNDS, only="several_sums"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "the noise of units counts in a number of rows by half of one",
        'return (self.scales["units", 0] * both / 2,',
        'return (self.scales["units", 0] / 2,',
        Selection(_BOUNDS, only="several_sums"),
    ),
    Mutant(
        12,
        _OF_STATISTICS,
        "the rounding of a number that follows from sums is not in its bound",
        "self.failure) / unit + 1 / 2)",
        "self.failure) / unit)",
        Selection(_BOUNDS, only="several_sums"),
    ),
)

PRACTICAL = (
    Mutant(
        12,
        _OF_PRACTICAL,
        "a sample is said to keep more than it does",
        "mean - math.sqrt(2 * mean * log)",
        "mean - math.sqrt(mean * log / 2)",
        Selection(_GUARANTEE, only="keep_fewer_or_more"),
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "there are said to be as many records as a sample has on average",
        "return max(0.0, root) ** 2 / rate",
        "return sampled / rate",
        Selection(_GUARANTEE, only="keep_fewer_or_more"),
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "shares that promise no radius are taken where others do",
        "key=lambda one: one[:2])",
        "key=lambda one: one[1])",
        Selection(_GUARANTEE, only="tuned_shares"),
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "shares do not follow from what a region may lack",
        "holding.missing + holding.lacks, each)",
        "holding.missing, each)",
        Selection(_GUARANTEE, only="tuned_shares"),
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "the smallest target is never one more than a power of 2",
        "range(enough // 2 + 1, enough)",
        "range(enough // 2 + 2, enough)",
        Selection(_GUARANTEE, only="first_that_works"),
    ),
)

_METHOD = "core/one_cluster/practical/method.py"

NOTES = (
    Mutant(
        12,
        _METHOD,
        "a center moves by noise alone",
        "smallest=math.ceil(3 * count.scale),",
        "smallest=0,",
        Selection(_GUARANTEE, only="mostly_stays"),
    ),
    Mutant(
        12,
        _METHOD,
        "a bound is said to be nearer to the count than noise allows",
        "{holds.count_error + holds.excess:,} below",
        "{holds.count_error:,} below",
        Selection(_GUARANTEE, only="how_far_below"),
    ),
)

_REPEATED = "core/k_cover/repeated.py"
_ROWS = Selection(("tests/core/k_cover/test_rounds.py",), only="number_of_rows")

COVERS = (
    Mutant(
        12,
        _REPEATED,
        "the smallest target is that of noise which no run of it has",
        "(self._split(share) if self._counts else split).draws(1.0)",
        "split.draws(1.0)",
        Selection(("tests/core/k_cover/test_rounds.py",), only="planned_noise"),
    ),
    Mutant(
        12,
        _REPEATED,
        "a count of all rows has no part of the failure",
        "self.setting.params.failure / (self.setting.params.k + self._counts)",
        "self.setting.params.failure / self.setting.params.k",
        _ROWS,
    ),
    Mutant(
        12,
        _REPEATED,
        "the number of rows is promised with half of its failure",
        "math.log(1 / self._failure)",
        "math.log(0.5 / self._failure)",
        _ROWS,
    ),
    Mutant(
        12,
        _REPEATED,
        "rows for one ball are said to suffice for all",
        "math.ceil(smallest * params.k / params.coverage)",
        "math.ceil(smallest / params.coverage)",
        _ROWS,
    ),
    Mutant(
        12,
        _REPEATED,
        "the part of the failure of a count is said to be larger",
        "tightness(promises, self.setting.params.k + self._counts)",
        "tightness(promises, self.setting.params.k)",
        _ROWS,
    ),
)

_WORST = Selection(("tests/core/one_cluster/practical/test_lattice.py",), only="worst_level")

LATTICES = (
    Mutant(
        12,
        _OF_PRACTICAL,
        "balls of a lattice are promised to be as wide as at the best level",
        "return max(ratios), regions",
        "return min(ratios), regions",
        _WORST,
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "a radius is promised from the widest region on",
        "regions.radius(large[0])",
        "regions.radius(large[-1])",
        _WORST,
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "a fit tries no radii about the region itself",
        " + len(wide_radii(regions, level, widens=widens))",
        "",
        Selection(("tests/core/one_cluster/practical/test_lattice.py",), only="reckoned_with"),
    ),
    Mutant(
        12,
        _OF_PRACTICAL,
        "the choice of a ball is among as few as at the best level",
        "return radii, max(len(each",
        "return radii, min(len(each",
        _WORST,
    ),
)

CELLS = (
    Mutant(
        12,
        "core/histogram/sparse.py",
        "a delta of a half and more serves sparse tables",
        "not 0 < delta < 0.5",
        "not 0 < delta < 1",
        Selection(("tests/core/histogram/test_task.py",), only="one_sentence"),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/aggregator.py",
        "only so many blocks may fail as noise alone reaches",
        "max(self.setting.params.blocks - self.stable, noise)",
        "noise",
        Selection(("tests/core/sample_and_aggregate/test_task.py",), only="most_failed_blocks"),
    ),
    Mutant(
        12,
        "core/histogram/sparse.py",
        "cells are promised to be released whatever their noise",
        "floor + self._count.threshold + self.error",
        "floor + self._count.threshold",
        Selection(("tests/core/histogram/test_sparse.py",), only="all_released"),
    ),
    Mutant(
        12,
        "core/histogram/dense.py",
        "counts that keep known ones are promised the noise of one cell",
        "error, most = 2 * self.error + 1,",
        "error, most = self.error,",
        Selection(("tests/core/histogram/test_task.py",), only="that_of_all_others"),
    ),
    Mutant(
        12,
        "core/histogram/found.py",
        "counts below 0 add to the total",
        "int(self.counts.sum()))",
        "int(abs(self.counts).sum()))",
        Selection(("tests/core/histogram/test_task.py",), only="total_of_a_table"),
    ),
)
