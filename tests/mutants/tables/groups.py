"""Jobs that are asked about each group by itself: what a group may spend, what it sees, what is shown."""

from tests.mutants.mutant import Mutant, Selection

_CORE, _JOB, _SPLIT = "core/groups.py", "pipelines/job/groups.py", "transforms/split_groups.py"

_SPENT = Selection(("tests/pipelines/test_every_group.py",), "", "histogram,k_means,quantiles")
_NEEDED = Selection(("tests/pipelines/test_every_charge.py",), "all_groups", "histogram,k_means,quantiles")
_PROMISED = Selection(
    ("tests/pipelines/test_every_promise.py",), "groups_of_any_size and (histogram or cdf or ranges)"
)
_CHARGED = Selection(("tests/pipelines/test_groups.py",), "plan_of_its_rows or plan_says or ledger")
_READ = Selection(("tests/transforms/test_split_groups.py",))
_FUNCTIONS = Selection(("tests/pipelines/test_functions_by_group.py",))
_GOLDEN = Selection(("tests/pipelines/test_groups.py",), "aggregates_of_its and (median or histogram)")
_TIMES = Selection(("tests/pipelines/test_keys_of_time.py",))
_SHOWN = Selection(("tests/pipelines/test_groups.py",), "first_release_stays")

COSTS = (
    Mutant(
        6,
        _CORE,
        "a group gets half of delta, which is too much for a row that stays in its group",
        "return Budget(cost.epsilon, cost.delta)",
        "return Budget(cost.epsilon, budget.delta / changes)",
        _SPENT,
    ),
    Mutant(
        7,
        _CORE,
        "each group gets all of the budget, although two change, and nothing looks at the sum",
        "total = min(spend(draft.mechanisms, budget.delta), apart, key=lambda each: each.epsilon)\n"
        "    return GroupedPlan(each, part, changes, copies, total)",
        "doubled = plan_one(budget)\n    return GroupedPlan(doubled, budget, changes, copies, doubled.spend)",
        _SPENT,
    ),
    Mutant(
        7,
        _CORE,
        "each group gets all of the budget, although two change",
        "one = for_one_change(budget, changes)",
        "one = budget",
        _CHARGED,
    ),
    Mutant(
        8,
        _CORE,
        "a replaced row is charged as one change",
        "draws = tuple(draw.under_replacement() for draw in draws)",
        "pass",
        _SPENT,
    ),
    Mutant(
        8,
        _CORE,
        "a unit in several groups is charged for one of them",
        "return draws * self.copies",
        "return draws",
        _SPENT,
    ),
    Mutant(
        7,
        _CORE,
        "a unit has the budget in each of its groups, half of the noise, and nothing looks at the sum",
        'each, part, spent = planned(together.budgets["0"]), together.budgets["0"], together.spend',
        "each, part, spent = planned(one), one, None",
        _SPENT,
    ),
    Mutant(
        12,
        _CORE,
        "a unit is charged for twice as many groups as it may be in",
        "return draws * self.copies",
        "return draws * 2 * self.copies",
        _NEEDED,
    ),
    Mutant(
        7,
        "core/centers/coreset.py",
        "counts of cells in groups have half of the noise",
        'noise = Gaussian.of("counts", share * self._shares["count"], cells)',
        'noise = Gaussian.of("counts", share * self._shares["count"], cells / 2)',
        Selection(("tests/pipelines/test_every_group.py",), "all_groups", "k_means"),
    ),
    Mutant(
        12,
        _CORE,
        "groups of replaced rows promise what the whole budget would keep",
        "return GroupedPlan(each, part, changes, copies, total)",
        'each = type(each)(**{**vars(each), "promises": plan_one(budget).promises})\n'
        "    return GroupedPlan(each, part, changes, copies, total)",
        _PROMISED,
    ),
    Mutant(
        7,
        "pipelines/grouped_plan.py",
        "a unit in several groups has the budget in each",
        "copies = 1 if job.bounds is None else min(job.bounds.groups, len(keys))",
        "copies = 1",
        _SPENT,
    ),
    Mutant(
        1,
        _JOB,
        "under replace_one a group is planned as if its number of rows were public",
        '"neighbors": "add_or_remove_one"}',
        '"neighbors": self.privacy.neighbors}',
        _CHARGED,
    ),
)

RECORDS = (
    Mutant(
        4,
        _SPLIT,
        "a unit is in the samples of all of its groups or of none",
        "siphash(ids, salt, group << _GROUP_PLACE | _GROUP)",
        "siphash(ids, salt, _GROUP)",
        _READ,
    ),
    Mutant(
        12,
        _SPLIT,
        "the last row of a group is also in the next one",
        "for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):",
        "for number, (start, end) in enumerate(zip([0, *(e - (e > 0) for e in ends)], ends, strict=False)):",
        _READ,
    ),
    Mutant(
        12,
        "transforms/read_blocks.py",
        "rows out of bounds are counted for the first group",
        "np.add.at(counts[:, kind], groups[rows & (groups >= 0)], 1)",
        "counts[0, kind] += np.count_nonzero(rows)",
        _GOLDEN,
    ),
    Mutant(
        4,
        "core/sample_and_aggregate/stable_point.py",
        "the same blocks of all groups are sampled",
        "changes=self.changes, bounded=True, samples=False)",
        "changes=self.changes, bounded=True)",
        Selection(("tests/core/sample_and_aggregate/test_aggregator.py",), "never_sampled"),
    ),
    Mutant(
        4,
        "core/interior_point/one_cluster_reduction.py",
        "a second execution samples records of the same ranks",
        "Practical(inner, bounded=True, samples=False)",
        "Practical(inner, bounded=True)",
        Selection(("tests/core/interior_point/test_one_cluster_reduction.py",), "never_sampled"),
    ),
    Mutant(
        12,
        "transforms/bound_groups.py",
        "a function sees a unit in all of its groups",
        "kept = np.where(pairs.keep(), groups, -1)",
        "kept = groups",
        _FUNCTIONS,
    ),
    Mutant(
        12,
        "transforms/split_units.py",
        "blocks hold rows of all groups",
        "subsample = (subsample + groups * splitting.subsamples)[kept]",
        "subsample = subsample[kept]",
        _FUNCTIONS,
    ),
    Mutant(
        12,
        "transforms/bound_groups.py",
        "the rows of a unit do not meet before its groups are chosen",
        "shard = (siphash(unit_ids(units), splitting.salt, _OWNERS)",
        "shard = (siphash(unit_ids(units) + np.arange(len(units), dtype=np.uint64), splitting.salt, _OWNERS)",
        _FUNCTIONS,
    ),
    Mutant(
        7,
        "pipelines/run/run.py",
        "a unit is in all of its groups",
        'elements | "Units" >> BoundUnits(bounding), bounding.reader, prepared.salt',
        'elements | "Units" >> BoundUnits(replace(bounding, groups=9)), bounding.reader, prepared.salt',
        _GOLDEN,
    ),
    Mutant(
        12,
        "pipelines/release.py",
        "a second draw of a table of groups replaces the first one",
        "folder.create(TABLE, encode_table(release, table))",
        "folder.replace(TABLE, encode_table(release, table))",
        _SHOWN,
    ),
    Mutant(
        12,
        "transforms/group_keys.py",
        "a key that no file can hold ends the run where noise releases it",
        "& (first <= all_times) & (all_times < last)",
        "",
        _TIMES,
    ),
    Mutant(
        12,
        "transforms/group_keys.py",
        "a key of the year 10000 is one",
        "(all_times < last)",
        "(all_times <= last)",
        _TIMES,
    ),
    Mutant(
        12,
        "transforms/group_keys.py",
        "a week begins on a Thursday, as those of numpy do",
        "days - (days - _MONDAY) % 7",
        "days - days % 7",
        _TIMES,
    ),
)
