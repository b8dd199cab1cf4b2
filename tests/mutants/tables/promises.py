"""Promises that split a failure probability among their parts, and what a run or a ledger says of itself."""

from tests.mutants.mutant import Mutant, Selection

_FILTER = "core/privacy_filter.py"
_FILTERS = Selection(
    ("tests/core/test_privacy_filter.py",), only="draws_without_a_delta or by_rounding_alone"
)
_CDF = Selection(("tests/core/cdf/test_found.py",), only="all_bounds_of_the_ordered")
_THRESHOLD = Selection(("tests/core/threshold/test_interior_point.py",), only="may_fail_of_a_promise")
_BALLS = Selection(("tests/pipelines/simulation/test_simulate.py",), only="no_ball_at_all")
_RANGES = Selection(("tests/core/ranges/test_found.py",), only="ends_of_all_rectangles or noisier_of_box")

PROMISES = (
    Mutant(
        6,
        _FILTER,
        "a Rényi filter takes all of delta for its conversion beside half of it for draws",
        "    allowed = allowed_divergence(budget.epsilon, budget.delta / 2, order)\n",
        "    allowed = allowed_divergence(budget.epsilon, budget.delta, order)\n",
        _FILTERS,
    ),
    Mutant(
        12,
        _FILTER,
        "a sum may exceed its limit by far more than rounding",
        "limit * (1 + 1e-9)",
        "limit * (1 + 1e-4)",
        _FILTERS,
    ),
    Mutant(
        4,
        "core/sampling.py",
        "keys of neighboring uses share a word",
        "np.array([2 * tweak, 2 * tweak + 1]",
        "np.array([tweak, tweak + 1]",
        Selection(("tests/core/test_sampling.py",), only="share_a_word"),
    ),
    Mutant(
        6,
        "core/mechanisms/heavy_path.py",
        "delta of a walk counts one query fewer than it asks",
        "self.missed(margin, self.levels + 1)",
        "self.missed(margin, self.levels)",
        Selection(("tests/core/mechanisms/test_heavy_path.py",), only="every_query"),
    ),
    Mutant(
        12,
        "core/cdf/ordered.py",
        "a range is promised the error of one of its ends",
        "return LargestErrors(count, 2 * count)",
        "return LargestErrors(count, count)",
        _CDF,
    ),
    Mutant(
        12,
        "core/cdf/reading.py",
        "the distance to the population counts on an error that has all of the failure probability",
        "half_error=math.floor(half.count)",
        "half_error=math.floor(whole.count)",
        _CDF,
    ),
    Mutant(
        12,
        "core/cdf/hierarchical.py",
        "the proven error of a count leaves out its rounding",
        "math.floor(largest_sum(prefixes, largest, failure) + 0.5)",
        "math.floor(largest_sum(prefixes, largest, failure))",
        Selection(("tests/core/cdf/test_hierarchical.py",), only="includes_its_rounding"),
    ),
    Mutant(
        12,
        "core/mechanisms/partition_selection.py",
        "a group is missed more often than promised under Gaussian noise",
        "math.sqrt(2 * math.log(1 / failure))",
        "math.sqrt(math.log(1 / failure))",
        Selection(("tests/core/mechanisms/test_partition_selection.py",), only="missed_more_often"),
    ),
    Mutant(
        12,
        "core/mechanisms/stability.py",
        "the margin of the fullest cell is that of one cell",
        "math.log(cells / failure)",
        "math.log(1 / failure)",
        Selection(("tests/core/mechanisms/test_stability.py",), only="hide_the_fullest"),
    ),
    Mutant(
        12,
        "core/quantiles/tree.py",
        "ranks of a tree are promised as if the number of records were known",
        "between = None if best.total_is_public else (given[0], given[-1])",
        "between = None",
        Selection(("tests/core/quantiles/test_tree.py",), only="that_is_not_known"),
    ),
    Mutant(
        12,
        "core/threshold/ranks.py",
        "both choices of a threshold take all of the failure probability",
        """            self.setting.params.failure / 2
""",
        """            self.setting.params.failure
""",
        _THRESHOLD,
    ),
    Mutant(
        12,
        "core/threshold/interior_point.py",
        "the noisy number of examples takes all of the failure probability",
        "math.log(4 / failure)",
        "math.log(1 / failure)",
        _THRESHOLD,
    ),
    Mutant(
        12,
        "core/ranges/found.py",
        "both ends of a rectangle take the failure probability of one",
        "self.asked.failure / (2 * len(self.asked.ranges))",
        "self.asked.failure / len(self.asked.ranges)",
        _RANGES,
    ),
    Mutant(
        12,
        "core/ranges/found.py",
        "a rectangle's bound is made for the smaller one of two noises",
        "max(self.box_scale, self.cell_scale)",
        "min(self.box_scale, self.cell_scale)",
        _RANGES,
    ),
    Mutant(
        12,
        "core/centers/center_counts.py",
        "counts about centers are bounded on one side",
        "ndtri(each / 2)",
        "ndtri(each)",
        Selection(("tests/core/centers/test_center_counts.py",)),
    ),
    Mutant(
        12,
        "core/sample_and_aggregate/aggregator.py",
        "a radius is promised to hold as many answers as it aims at",
        "self.stable - error, self.stable - 2 * error, choice)",
        "self.stable - error, self.stable - error, choice)",
        Selection(("tests/core/sample_and_aggregate/test_aggregator.py",), only="miss_it_by_little"),
    ),
    Mutant(
        12,
        "transforms/sandbox.py",
        "blocks have no shared memory of their own",
        """    for place in (folder, _SHARED):
        _mount(""",
        """    for place in (folder,):
        _mount(""",
        Selection(("tests/transforms/test_sandbox_folders.py",)),
    ),
    Mutant(
        12,
        "transforms/function_process.py",
        "a function that crashes may leave its rows in a core file",
        "(resource.RLIMIT_CORE, 0)",
        "(resource.RLIMIT_CORE, limits.memory)",
        Selection(("tests/transforms/test_run_function.py",), only="core_file"),
    ),
    *(
        Mutant(
            12,
            "pipelines/job/policy.py",
            f"a public count is also of the grid points {where} its box",
            f"_inside({end}, grid, math.{rounded})",
            f"_inside({end}, grid, round)",
            Selection(("tests/pipelines/job/test_policy.py",)),
        )
        for where, end, rounded in (("below", "lowest", "ceil"), ("above", "highest", "floor"))
    ),
    Mutant(
        12,
        "pipelines/ledger/left.py",
        "runs are said to fit whose delta does not",
        "math.floor(min(times))",
        "math.floor(times[0])",
        Selection(("tests/pipelines/ledger/test_left.py",), only="so_many_runs_fit"),
    ),
    Mutant(
        12,
        "pipelines/ledger/ledger.py",
        "a charge that names no ledger is taken for one of any",
        "if entry.ledger != ledger.id)",
        "if entry.ledger not in (None, ledger.id))",
        Selection(("tests/pipelines/ledger/test_ledger.py",), only="of_another_ledger"),
    ),
    Mutant(
        12,
        "pipelines/ledger/ledger.py",
        "a run is checked as if those before it in its pipeline cost nothing",
        """            ledger = ledger.model_copy(update={"charges": (*ledger.charges, entry)})
    job, plan = runs[-1]
""",
        """            pass
    job, plan = runs[-1]
""",
        Selection(("tests/pipelines/ledger/test_check_charges.py",)),
    ),
    Mutant(
        12,
        "pipelines/simulation/measures.py",
        "a search that finds no ball breaks no promise",
        'return {"missing": INFINITE} if enough and promises["missing"] is not None else {}',
        "return {}",
        _BALLS,
    ),
    Mutant(
        12,
        "pipelines/simulation/measures.py",
        "a cover that lacks a ball breaks no promise",
        'missing += [INFINITE] if enough and promises["missing"] is not None else []',
        "missing += []",
        _BALLS,
    ),
    Mutant(
        12,
        "pipelines/choose/solve.py",
        "a smaller value is not looked for between those at powers of two",
        "away = {*(1 << step for step in range(place.bit_length())), *range(3, 49, 3)}",
        "away = {*(1 << step for step in range(place.bit_length()))}",
        Selection(("tests/pipelines/choose/test_solve.py",), only="found_below_some"),
    ),
    Mutant(
        12,
        "transforms/sandbox.py",
        "a sandbox shows all that lies in a folder of programs",
        "wanted |= {place} if within else _importable(place)",
        "wanted |= {place}",
        Selection(("tests/transforms/test_sandbox.py",), only="programs or sources"),
    ),
    Mutant(
        12,
        "transforms/run_function.py",
        "files of a job may lie where a sandbox shows them",
        "        if function.isolation == SANDBOX:\n            _check_unseen(function)\n",
        "",
        Selection(("tests/transforms/test_sandbox.py",), only="among_modules"),
    ),
    Mutant(
        12,
        "pipelines/job/subsamples_job.py",
        "a sandbox may show the input of a job",
        "places = [*_files(self.input.path), self.output, self.privacy.ledger]",
        "places = [self.output, self.privacy.ledger]",
        Selection(("tests/transforms/test_sandbox.py",), only="job_is_refused"),
    ),
    Mutant(
        12,
        "core/quantiles/recursive.py",
        "the typical error of one quantile leaves out its interval",
        "typical_distance(aim, scale) * widening(self._size, INTERVAL_SHARE, failure)",
        "typical_distance(aim, scale)",
        Selection(("tests/core/quantiles/test_task.py",), only="choosing_an_interval"),
    ),
    Mutant(
        12,
        "core/quantiles/recursive.py",
        "the typical error of several quantiles leaves out their intervals",
        "(self._widened(scale, rank) * scale) ** 2",
        "scale**2",
        Selection(("tests/core/quantiles/test_task.py",), only="choosing_an_interval"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "the typical error of a median leaves out its interval",
        "Promises(math.ceil(bound), typical * more)",
        "Promises(math.ceil(bound), typical)",
        Selection(("tests/core/quantiles/test_exponential.py",), only="interval_costs"),
    ),
    Mutant(
        12,
        "pipelines/compare/compare.py",
        "groups of one release are compared as if each had rows of its own run",
        "alone = b is None or _place(a) == _place(b)",
        "alone = False",
        Selection(("tests/pipelines/compare/test_compared_groups.py",), only="it_kept or not_there"),
    ),
    Mutant(
        12,
        "pipelines/report/summary.py",
        "a promise of one group reads as one of all groups",
        'whose = " of any one group" if "each_group" in release else ""',
        'whose = ""',
        Selection(("tests/pipelines/report/test_summary.py",), only="odd_key"),
    ),
)
