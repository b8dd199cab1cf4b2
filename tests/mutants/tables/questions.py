"""Jobs of several questions: what all of them cost, whose samples are whose, and which draw is shown."""

from tests.mutants.mutant import Mutant, Selection

_CORE, _RUN, _RELEASE = "core/questions.py", "pipelines/run/joint_run.py", "pipelines/joint_release.py"
_ROUNDS, _TOGETHER = "transforms/run_rounds.py", "transforms/bound_together.py"
_UNITS = "transforms/bound_units.py"

_BUDGET = Selection(("tests/core/test_questions.py",))
_STRANDS = Selection(("tests/transforms/test_run_strands.py",), "one_thread or columns or units or repeated")
_GOLDEN = Selection(("tests/pipelines/test_questions.py",), "aggregates_of_a_run and one_thread")
_JOB = Selection(("tests/pipelines/test_questions.py",), "stored_table or secret or recomputed or ledger")

COSTS = (
    Mutant(
        6,
        _CORE,
        "each question gets all of delta",
        "WHOLE * part * budget.delta)",
        "WHOLE * budget.delta)",
        _BUDGET,
    ),
    Mutant(
        8,
        _CORE,
        "only the first question is charged",
        "return tuple(draw for plan in self.plans.values() for draw in plan.mechanisms)",
        "return next(iter(self.plans.values())).mechanisms",
        _BUDGET,
    ),
    Mutant(
        7,
        _CORE,
        "parts are raised as if the costs of all questions were those of the dearest",
        "yield spend([draw for each in draws for draw in each], delta)",
        "yield max((spend(each, delta) for each in draws), key=lambda each: each.epsilon)",
        _BUDGET,
    ),
    Mutant(
        7,
        _CORE,
        "a plan that spends too much is kept",
        "if at_most(draft.spend.epsilon, budget.epsilon):",
        "if draft.spend.epsilon <= 1.5 * budget.epsilon:",
        _BUDGET,
    ),
    Mutant(
        8,
        "pipelines/joint_plan.py",
        "the joint spend is not checked",
        "if not (at_most(spent, budget.epsilon) and deltas <= budget.delta):",
        "if not deltas <= budget.delta:",
        _JOB,
    ),
)

STRANDS = (
    Mutant(
        4,
        _RUN,
        "all questions sample the same records",
        "plan = make_joint_plan(job, {name: secret_salt() for name in job.jobs})",
        "plan = make_joint_plan(job, dict.fromkeys(job.jobs, secret_salt()))",
        _JOB,
    ),
    Mutant(
        12,
        _ROUNDS,
        "noise is drawn again for every consumer",
        'return passed | "Keep" >> Spread() if draws else passed',
        "return passed",
        _STRANDS,
    ),
    Mutant(
        12,
        _ROUNDS,
        "a question releases from the state of the first one",
        "has = held_by(kept, [number])[number]",
        "has = held_by(kept, [kept[0][0]])[kept[0][0]]",
        _STRANDS,
    ),
    Mutant(
        12,
        "transforms/merge_aggregates.py",
        "counts below the floor reach the private stage",
        "return strand, made if floor is None else Made(made.aggregate.above(floor), made.mark)",
        "return strand, made",
        _STRANDS,
    ),
    Mutant(
        12,
        _UNITS,
        "all questions get the record of the first one",
        "yield [own.split(batch, units) for own in bounds]",
        "yield [bounds[0].split(batch, units) for own in bounds]",
        _STRANDS,
    ),
    Mutant(
        7,
        _TOGETHER,
        "what a unit contributes to a question is not bounded",
        "return number, bounding.bounds[number].bound(shard, pieces)",
        "wide = {name: 1 << 20 for name in ('groups', 'rows') if hasattr(bounding.bounds[number], name)}\n"
        "    return number, dataclasses.replace(bounding.bounds[number], **wide).bound(shard, pieces)",
        _STRANDS,
    ),
    Mutant(
        12,
        _RUN,
        "a question with contributions gets one record of each unit",
        "    if bounds is None:\n        return bounding",
        "    if True:\n        return bounding",
        _GOLDEN,
    ),
    Mutant(
        12,
        _UNITS,
        "key columns of the first question with groups alone are read",
        "keys = list(dict.fromkeys(name for own in bounds for name in own.key_columns))",
        "keys = list(next((own.key_columns for own in bounds if own.key_columns), ()))",
        _STRANDS,
    ),
)

SHOWN = (
    Mutant(
        12,
        _RELEASE,
        "a second draw of a table replaces the first one",
        'stored = made if folder.create(file, made) else folder.read(file) or b""',
        "folder.replace(file, made)\n    stored = made",
        _JOB,
    ),
    Mutant(
        12,
        _RELEASE,
        "a second draw is shown in release.json, although the first one is stored",
        'stored = made if folder.create(file, made) else folder.read(file) or b""',
        "folder.create(file, made)\n    stored = made",
        _JOB,
    ),
    Mutant(
        12,
        _RELEASE,
        "a table of other noise is shown",
        'if answer["mechanisms"] != finite(draft.answers[name])["mechanisms"]:',
        "if False:",
        _JOB,
    ),
)

_POLICIES = Selection(("tests/pipelines/test_questions.py",), "policy or known")
_OF_GROUPS = Selection(("tests/pipelines/test_grouped_questions.py",), "aggregates")

GROUPS = (
    Mutant(
        8,
        _CORE,
        "a unit in several groups is charged for one of them",
        "draws = [plan.mechanisms for plan in self.plans.values()]",
        "draws = [getattr(plan, 'each', plan).mechanisms for plan in self.plans.values()]",
        Selection(("tests/pipelines/test_every_plan.py",), "several_questions_is_charged"),
    ),
    Mutant(
        4,
        _RUN,
        "a unit is sampled in all of its groups or in none",
        "salt = None if self.job.unit is None else self.salt",
        "salt = None",
        Selection(("tests/pipelines/test_grouped_questions.py",), "identity"),
    ),
    Mutant(
        12,
        _RUN,
        "rows out of bounds are counted for all groups together",
        "apart=its.apart)",
        "apart=False)",
        _OF_GROUPS,
    ),
    Mutant(
        12,
        "transforms/split_groups.py",
        "the groups of a question are those of the first question",
        "strand = strands.get((question, group))",
        "strand = strands.get((min(q for q, _ in strands), group))",
        _OF_GROUPS,
    ),
    Mutant(
        12,
        _RELEASE,
        "the answer of every group is that of the first one",
        "states = cast(Sequence[tuple[int, Finding | Checked]], ended)",
        "states = [(number, ended[0][1]) for number, _ in ended]",
        Selection(("tests/pipelines/test_grouped_questions.py",), "one_release"),
    ),
    Mutant(
        12,
        "pipelines/joint_plan.py",
        "the number of groups is not bounded",
        "if groups > MOST_GROUPS:",
        "if groups > 10 * MOST_GROUPS:",
        Selection(("tests/pipelines/test_grouped_questions.py",), "one_sentence"),
    ),
    Mutant(
        8,
        _CORE,
        "a job under a policy says that it hides every replacement",
        "return next((plan.policy for plan in self.plans.values() if plan.policy is not None), None)",
        "return None",
        _POLICIES,
    ),
    Mutant(
        8,
        _CORE,
        "only the policy of the first question counts",
        "return next((plan.policy for plan in self.plans.values() if plan.policy is not None), None)",
        "return next(iter(self.plans.values())).policy",
        _POLICIES,
    ),
    Mutant(
        12,
        "pipelines/job/questions.py",
        "known counts of the domain of one question are those of another one",
        'for key in ("graph", "constraints") if',
        'for key in ("graph",) if',
        _POLICIES,
    ),
)
