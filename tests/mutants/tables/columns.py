"""Quantiles of several columns, and values at the ends of a domain."""

from tests.mutants.mutant import Mutant, Selection

_COLUMNS = ("tests/core/quantiles/test_columns.py",)
_METHODS = "core/quantiles/columns.py"

COLUMNS = (
    Mutant(
        12,
        _METHODS,
        "each column may fail with all of the failure",
        "failure=setting.params.failure / grid.dimension",
        "failure=setting.params.failure",
        Selection(_COLUMNS, only="share_the_failure"),
    ),
    Mutant(
        6,
        _METHODS,
        "each column spends all of delta",
        "budget.delta / len(parts)",
        "budget.delta",
        Selection(_COLUMNS, only="share_the_failure"),
    ),
    Mutant(
        12,
        _METHODS,
        "the smallest distance of all columns is that of each",
        "Policy(Distance(secrets.thetas[at]))",
        "Policy(Distance(min(secrets.thetas)))",
        Selection(_COLUMNS, only="own_part"),
    ),
    Mutant(
        12,
        _METHODS,
        "the narrowest parts of all columns are those of each",
        "Policy(Partition((secrets.widths[at],)))",
        "Policy(Partition((min(secrets.widths),)))",
        Selection(_COLUMNS, only="own_part"),
    ),
    Mutant(
        12,
        "core/quantiles/smooth.py",
        "noise takes a value one step beyond the domain",
        "released = self.smooth.value(value, bound, 0, upper, noise)",
        "released = self.smooth.value(value, bound, 0, upper + 1, noise)",
        Selection(_COLUMNS, only="beyond_the_domain"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "scores end where a value is as probable as a promise may fail",
        "draw.scale / 2, failure * 1e-10",
        "draw.scale / 2, failure",
        Selection(("tests/core/quantiles/test_exponential.py",), only="ten_billionth"),
    ),
)
"""What columns share, and what each has of its own."""
