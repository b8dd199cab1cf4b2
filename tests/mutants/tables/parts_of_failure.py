"""Parts of a failure probability, what promises are made for, and checks at their edge."""

from tests.mutants.mutant import Mutant, Selection

_BY_RANK = "core/bounds/by_rank.py"
_BOUNDS = "tests/core/bounds/test_bounds.py"
_REDUCTION = "core/interior_point/one_cluster_reduction.py"
_END = Selection(("tests/core/interior_point/test_one_cluster_reduction.py",), only="choice_of_an_end_fails")
_LEARNER = "core/threshold/interior_point.py"
_THRESHOLD = "tests/core/threshold/test_interior_point.py"
_AGGREGATE = "core/sample_and_aggregate"
_CENTER, _AGGREGATOR = f"{_AGGREGATE}/center_of_attention.py", f"{_AGGREGATE}/aggregator.py"
_CENTERS = f"tests/{_AGGREGATE}/test_center_of_attention.py"
_MEDIANS = f"tests/{_AGGREGATE}/test_median.py"
_TOGETHER = Selection((f"tests/{_AGGREGATE}/test_aggregator.py",), only="fail_together_as_rarely")
_EXPRESSION = "transforms/evaluate_expression.py"
_WHOLE = Selection(("tests/transforms/test_evaluate_expression.py",), only="and_those_beyond_are_null")
_STORES = "tests/pipelines/storage/test_store_folder.py"

PARTS = (
    Mutant(
        12,
        _BY_RANK,
        "the promise of several columns is that of the easiest one",
        "worst = max(math.floor",
        "worst = min(math.floor",
        Selection((_BOUNDS,), only="several_columns"),
    ),
    Mutant(
        12,
        _BY_RANK,
        "fewer rows are called enough than the share outside needs",
        "2 * (worst + 1) / (1 - self.setting.params.outside / 2)",
        "2 * (worst + 1)",
        Selection((_BOUNDS,), only="are_enough"),
    ),
    Mutant(
        12,
        _BY_RANK,
        "bounds that cross are released with the lower one above",
        "low, high = sorted(",
        "low, high = tuple(",
        Selection((_BOUNDS,), only="that_cross"),
    ),
    Mutant(
        12,
        "core/quantiles/recursive.py",
        "ranks of cells are promised as if the number of records were known",
        'return None if self.setting.neighbors.name == "replace_one" else (self._given[0], self._given[-1])',
        "return None",
        Selection(("tests/core/quantiles/test_recursive.py",), only="every_number_of_cells"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "the largest error is that of as many cells as there are boxes",
        "self.setting.params.failure / MOST_CELLS",
        "self.setting.params.failure / MOST_BOXES",
        Selection(("tests/core/ranges/test_found.py",), only="as_many_cells"),
    ),
    Mutant(
        12,
        _REDUCTION,
        "the middle records leave out half of what an end needs on either side",
        "self.middle + 2 * depth",
        "self.middle + depth",
        _END,
    ),
    Mutant(
        12,
        _REDUCTION,
        "the choice of an end takes all of the failure probability",
        "math.log(2 * self.most_candidates / failure)",
        "math.log(self.most_candidates / failure)",
        _END,
    ),
    Mutant(
        12,
        _LEARNER,
        "ranks are tried up to a noisy number that is too low half of the time",
        "max(1, examples + self.total_margin)",
        "max(1, examples)",
        Selection((_THRESHOLD,), only="ranks_are_tried"),
    ),
    Mutant(
        12,
        _LEARNER,
        "the window takes all of the failure probability",
        "records_needed(failure / 4) / 2",
        "records_needed(failure) / 2",
        Selection((_THRESHOLD,), only="has_a_quarter"),
    ),
    Mutant(
        12,
        _CENTER,
        "a center is said to stay for one change more than it does",
        "return agreeing - majority(self.setting.params.blocks)",
        "return agreeing - majority(self.setting.params.blocks) + 1",
        Selection((_CENTERS,), only="cannot_leave"),
    ),
    Mutant(
        12,
        _CENTER,
        "a center is promised to be nearer than its ball may be",
        "(3 + 4 * round_.noise",
        "(2 + 4 * round_.noise",
        Selection((_CENTERS,), only="promised_spread"),
    ),
    Mutant(
        12,
        f"{_AGGREGATE}/smooth_median.py",
        "a median is said to stay for one change more than it does",
        "agreeing - (self.setting.params.blocks + 1) // 2 - 1",
        "agreeing - (self.setting.params.blocks + 1) // 2",
        Selection((_MEDIANS,), only="vanishes"),
    ),
    Mutant(
        12,
        _AGGREGATOR,
        "the value takes all of the failure probability beside its parts",
        "return (1 - others) * self.setting.params.failure",
        "return self.setting.params.failure",
        _TOGETHER,
    ),
    Mutant(
        12,
        _AGGREGATOR,
        "the number of failed blocks takes all of the failure probability",
        "_FAILURES * self.setting.params.failure)",
        "self.setting.params.failure)",
        _TOGETHER,
    ),
    Mutant(
        12,
        f"{_AGGREGATE}/median.py",
        "a radius that holds half of the answers is said to hold their median",
        "if 2 * radius.holds > len(points)",
        "if 2 * radius.holds >= len(points) - 1",
        Selection((_MEDIANS,), only="tells_of_the_median"),
    ),
    Mutant(
        12,
        f"{_AGGREGATE}/outputs.py",
        "nothing is released of as many failed blocks as a value is promised for",
        "if failed > self.failures.most:",
        "if failed >= self.failures.most:",
        Selection((f"tests/{_AGGREGATE}/test_task.py",), only="up_to_the_most"),
    ),
    Mutant(
        12,
        "transforms/bound_units.py",
        "counts of checks have one word of bits, however many columns there are",
        "(2 * len(bounding.columns) + 63) // 64",
        "1",
        Selection(("tests/transforms/test_count_outside.py",), only="more_kinds_than"),
    ),
    Mutant(
        12,
        "transforms/merge_aggregates.py",
        "merged counts lose one less than the floor",
        "made.aggregate.above(floor)",
        "made.aggregate.above(floor - 1)",
        Selection(("tests/transforms/test_run_rounds.py",), only="floor_is_taken_off"),
    ),
    Mutant(
        12,
        _EXPRESSION,
        "a quotient that is no whole number of 64 bits is one",
        "held &= (a != -(2**63)) | (b != -1)",
        "pass",
        _WHOLE,
    ),
    Mutant(
        12,
        _EXPRESSION,
        "the least whole number is null beside one that is too large",
        "(-(2**63), 2**63 - 1))",
        "(-(2**63) + 1, 2**63 - 1))",
        _WHOLE,
    ),
    Mutant(
        12,
        _EXPRESSION,
        "a float just beyond all whole numbers is rounded to one",
        "pc.less(whole, 2.0**63)",
        "pc.less_equal(whole, 2.0**63)",
        _WHOLE,
    ),
    Mutant(
        12,
        "transforms/join_table.py",
        "a public table may be written again while it is read",
        "{version, version_of(file)} != {file.version}",
        "{version} != {file.version}",
        Selection(("tests/transforms/test_preparation.py",), only="written_again"),
    ),
    Mutant(
        12,
        "pipelines/storage/object_folder.py",
        "a swap whose answer was lost counts as none",
        "self.write(name, data, found[1]) or self.read(name) == data",
        "self.write(name, data, found[1])",
        Selection((_STORES,), only="answer_was_lost"),
    ),
    Mutant(
        12,
        "pipelines/storage/store_folder.py",
        "a part of an object without a hash counts as all of it",
        "if whole and sent in (None,",
        "if sent in (None,",
        Selection((_STORES,), only="arrives_in_part"),
    ),
    Mutant(
        12,
        "pipelines/storage/local_folder.py",
        "a draft of a killed writer keeps a file from being swapped",
        "                clear(path)\n",
        "",
        Selection(("tests/pipelines/storage/test_local_folder.py",), only="draft_of_a_killed"),
    ),
)
