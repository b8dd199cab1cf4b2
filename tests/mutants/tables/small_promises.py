"""Promises of published constants, of bounds and of what tasks share, that only a test of their own shows."""

from tests.mutants.mutant import Mutant, Selection

_SAMPLES = ("tests/core/test_sampling.py",)
_HELD = Selection(("tests/core/test_held.py",))
_PAPER = ("tests/core/one_cluster/paper/test_method.py",)
_RADIUS = ("tests/core/one_cluster/paper/test_good_radius.py",)
_BOUNDS = ("tests/core/statistics/test_bounds.py",)
_CENTER, _OF_PAPER = "core/one_cluster/paper/good_center.py", "core/one_cluster/paper/method.py"
_OF_STATISTICS = "core/statistics/bounds.py"

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
)
