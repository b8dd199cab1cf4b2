"""How much policies let noise shrink, and what is promised under them."""

from tests.mutants.mutant import Mutant, Selection

_NORMS = Selection(("tests/core/test_policies.py",), only="sensitivit")
_HISTOGRAM = Selection(
    ("tests/core/histogram/test_constraints.py", "tests/core/histogram/test_task.py"),
    only="in_good_time or standard_error",
)
_LLOYD = "core/centers/lloyd.py"
_CENTERS = Selection(
    ("tests/core/centers/test_lloyd.py", "tests/core/centers/test_task.py"),
    only="parts_hide or fit_no_key or third_of_the or counts_are_of",
)
_PARTS = "core/centers/parts.py"
_JOB, _OF_JOB = "pipelines/job/policy.py", Selection(("tests/pipelines/job/test_policy.py",))

NORMS = (
    Mutant(
        12,
        "core/neighbors.py",
        "a replaced record has the same norms in L1 and in L2",
        "l2=math.sqrt(self.changes), linf=1",
        "l2=self.changes, linf=1",
        _NORMS,
    ),
    Mutant(
        12,
        "core/neighbors.py",
        "cumulative counts change by 1 in L2",
        "l2=math.sqrt(changed), linf=min(1, changed)",
        "l2=min(1, changed), linf=min(1, changed)",
        _NORMS,
    ),
    Mutant(
        12,
        "core/histogram/constraints.py",
        "twelve known counts are not searched",
        "searched = len(boxes) <= _SEARCHED",
        "searched = len(boxes) < _SEARCHED",
        _HISTOGRAM,
    ),
    Mutant(
        12,
        _PARTS,
        "parts that are wider than the domain have more noise",
        "np.minimum(self._widths - 1, self._extents).astype",
        "(self._widths - 1).astype",
        _CENTERS,
    ),
    Mutant(
        12,
        _PARTS,
        "numbers of parts that fit no key are taken",
        "< 1 << 62",
        "< 1 << 66",
        _CENTERS,
    ),
)

PROMISED = (
    Mutant(
        12,
        "core/histogram/method.py",
        "the standard error of a count is half of what it is",
        "math.sqrt(noise))",
        "math.sqrt(noise) / 2)",
        _HISTOGRAM,
    ),
    Mutant(
        12,
        _LLOYD,
        "counts fail with half of the probability that is stated",
        "error(self.setting.params.failure)",
        "error(self.setting.params.failure / 2)",
        _CENTERS,
    ),
    Mutant(
        12,
        _LLOYD,
        "rows are thought to pull public centers from half as far",
        "Promises(error), self._space.length(self._space.reach),",
        "Promises(error), self._space.length(self._space.reach) / 2,",
        _CENTERS,
    ),
)

READ = (
    Mutant(
        12,
        _JOB,
        "parts of a narrow step are lengths",
        "> _CLOSE * grid.step",
        "> _CLOSE",
        _OF_JOB,
    ),
    Mutant(
        12,
        _JOB,
        "a public count of the edge of the domain is refused",
        "lower > high or upper < low",
        "lower >= high or upper <= low",
        _OF_JOB,
    ),
    Mutant(
        12,
        _JOB,
        "ends of secret pairs are the points below them",
        "(_inside(a, grid, round), _inside(b, grid, round))",
        "(_inside(a, grid, math.floor), _inside(b, grid, math.floor))",
        _OF_JOB,
    ),
    Mutant(
        12,
        "core/mechanisms/ordered_search.py",
        "exact counts are thought to mislead",
        "if self.ends.scale else 0",
        "",
        Selection(("tests/core/mechanisms/test_ordered_search.py",), only="only_counts"),
    ),
)
