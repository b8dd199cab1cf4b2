"""Wrong versions of the accountants and of the ledger."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import ACCOUNTANTS, LEDGER, charged, nothing_but_noise, spent

_BUDGET = "core/budget.py"
_FILTER = "core/privacy_filter.py"
_LEDGER = "pipelines/ledger/ledger.py"
_POLICY = "pipelines/ledger/policy.py"
_POLICIES = Selection(("tests/pipelines/ledger/test_policy.py",))
_LARGE = Selection(("tests/pipelines/test_large_noise.py",), "one_row")
_SAMPLER = Selection(("tests/core/test_secure_noise.py",), "any_scale")
_COMPOSED = Selection(("tests/core/test_budget.py",))
_CHECKS = "core/input_checks.py"
_CONTENT = "pipelines/ledger/content.py"

COSTS = (
    Mutant(
        6,
        _BUDGET,
        "draws share one delta of their own",
        "own = sum(m.delta for m in mechanisms)",
        "own = max((m.delta for m in mechanisms), default=0.0)",
        ACCOUNTANTS,
    ),
    Mutant(
        6,
        _BUDGET,
        "all of delta is left after the draws' own",
        "left = delta - own",
        "left = delta if own <= delta else -1.0",
        ACCOUNTANTS,
    ),
    Mutant(
        6,
        _BUDGET,
        "zCDP is converted without the term of the order",
        "- np.log(delta * _USABLE) / (_USABLE - 1)",
        "- np.log(_USABLE) / (_USABLE - 1)",
        _COMPOSED,
    ),
    Mutant(
        6,
        _BUDGET,
        "a loss distribution is not computed where it gains",
        "math.log1p(-lost) if lost < 1 else 0.0",
        "math.log1p(-lost / 1e6) if lost < 1e6 else 0.0",
        _COMPOSED,
    ),
    Mutant(
        6,
        _BUDGET,
        "Gaussians spend the delta that other draws spent",
        "Spend(sum(pure) + _zcdp(rho, left), ",
        "Spend(sum(pure) + _zcdp(rho, delta), ",
        ACCOUNTANTS,
    ),
    Mutant(
        12,
        _BUDGET,
        "a composed loss distribution spends the draws' own deltas alone",
        "(Accountant.PLD,), delta)",
        "(Accountant.PLD,), own)",
        ACCOUNTANTS,
    ),
    Mutant(
        12,
        _LEDGER,
        "a run is charged no delta",
        "delta=plan.spend.delta",
        "delta=0.0",
        LEDGER,
    ),
    Mutant(
        6,
        _FILTER,
        "draws' own deltas may use all of delta, beside the conversion",
        "return math.fsum(draws), budget.delta / 2",
        "return math.fsum(draws), budget.delta",
        ACCOUNTANTS,
    ),
    Mutant(
        6,
        _FILTER,
        "runs share one delta",
        "math.fsum(charge.budget.delta for charge in charges)",
        "max((charge.budget.delta for charge in charges), default=0.0)",
        ACCOUNTANTS,
    ),
    Mutant(
        6,
        _BUDGET,
        "two changes double delta, and no more",
        "sum(_exp(i * self.epsilon) * self.delta for i in range(changes))",
        "sum(self.delta for _ in range(changes))",
        ACCOUNTANTS,
    ),
    Mutant(
        12,
        _FILTER,
        "pure draws have half the divergence",
        "/ (order - 1)\n\n\ndef _log_cosh",
        "/ (2 * order - 2)\n\n\ndef _log_cosh",
        ACCOUNTANTS,
    ),
    Mutant(
        12,
        _POLICY,
        "a ledger of a policy takes runs under any policy",
        "if getattr(theirs, field) != getattr(ours, field):",
        "if getattr(theirs, field) is None and getattr(ours, field) is not None:",
        _POLICIES,
    ),
    Mutant(
        12,
        _POLICY,
        "full privacy for one row is thought to suffice under known counts",
        "if policy is None or not policy.policy.constraints:",
        "if policy is None or policy is not None:",
        _POLICIES,
    ),
    Mutant(
        12,
        _LEDGER,
        "a run is admitted where the ledger has any room left",
        "if not at_most(spent.epsilon, ledger.epsilon):",
        "if not at_most(ledger.spent().epsilon, ledger.epsilon):",
        LEDGER,
    ),
    Mutant(
        12,
        _CONTENT,
        "an added record counts once where one is replaced",
        "return charge if neighbors == self.neighbors else charge.under_replacement()",
        "return charge",
        LEDGER,
    ),
    Mutant(
        12,
        _LEDGER,
        "a run that is tried again with less noise is not charged",
        "if not known.covers(plan):",
        "if not known.covers(plan) and known.release is not None:",
        LEDGER,
    ),
)

CHECKS = (
    Mutant(
        8,
        _CHECKS,
        "the counts of checks are drawn and not charged",
        "return self.round_.draws() if self.count is None else (*self.round_.draws(), self.count)",
        "return self.round_.draws()",
        charged("histogram"),
    ),
    Mutant(
        12,
        _CHECKS,
        "a replaced row changes as many counts of checks as an added one",
        "l1 = 2 * columns if twice else columns",
        "l1 = columns",
        spent("histogram"),
    ),
    Mutant(
        1,
        _CHECKS,
        "the counts of checks are released without noise",
        "count.add(outside.totals, noise)",
        "outside.totals",
        nothing_but_noise("histogram"),
    ),
    Mutant(
        12,
        _CHECKS,
        "the counts of checks are charged for one column alone",
        'Laplace.of("values left out or moved, by column", epsilon, l1)',
        'Laplace.of("values left out or moved, by column", epsilon, l1 / columns)',
        spent("histogram"),
    ),
    Mutant(
        12,
        _POLICY,
        "runs of one ledger read its units as texts and as numbers",
        'if kind != "text":',
        "if False:",
        _POLICIES,
    ),
    Mutant(
        12,
        "core/task.py",
        "a plan has noise that hides everything",
        "if largest >= LARGEST_SCALE:",
        "if False:",
        _LARGE,
    ),
    Mutant(
        12,
        "core/secure_noise.py",
        "noise that does not fit is an error where there is a number",
        "if scale >= _UNIFORM_FROM:",
        "if scale >= 2.0**80 and values.size / 0:",
        _SAMPLER,
    ),
    Mutant(
        12,
        _POLICY,
        "a ledger of replace_one has runs that read other rows",
        "if other is not None:",
        "if False:",
        _POLICIES,
    ),
)
