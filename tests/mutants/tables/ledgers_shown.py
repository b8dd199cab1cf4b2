"""What is said of a ledger: its text, its page, and how many more runs fit."""

from tests.mutants.mutant import Mutant, Selection

_TABLE, _PAGE, _LEFT = "pipelines/ledger/table.py", "pipelines/ledger/page.py", "pipelines/ledger/left.py"
_SHOWN = Selection(
    ("tests/pipelines/ledger/test_table.py", "tests/pipelines/ledger/test_page.py"),
    only="stands or half_of_delta or policy_of_a_ledger or made_smaller or adds_up_the",
)
_FITS = Selection(
    ("tests/pipelines/ledger/test_left.py",),
    only="so_many_runs_fit and dense or released_run or is_named_where or somebody",
)

TEXTS = (
    Mutant(
        12,
        _TABLE,
        "half of delta is said to be for a composition that adds up",
        '"" if ledger["order"] is None else HALF',
        '"" if ledger["order"] is not None else HALF',
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "a ledger of records is said to hide rows",
        'ledger["unit"], ledger.get("count"))',
        'ledger["unit"])',
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "a ledger of a policy is said to hide whole rows",
        "if policy is None else SECRET_PAIRS",
        "if True else SECRET_PAIRS",
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "the delta that is left is said to be spent",
        "Spent: {_pair(ledger['spent'], ledger['spent_delta'])}",
        "Spent: {_pair(ledger['spent'], ledger['left_delta'])}",
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "the delta that is spent is said to be left",
        "Left: {_pair(ledger['left'], ledger['left_delta'])}",
        "Left: {_pair(ledger['left'], ledger['spent_delta'])}",
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "the epsilon of a run is said to be what it counts",
        'number(entry["epsilon"]),',
        'number(entry["counted"]),',
        _SHOWN,
    ),
    Mutant(
        12,
        _TABLE,
        "less than nothing is left",
        "max(0.0, ledger.epsilon - spent.epsilon) if fits",
        "ledger.epsilon - spent.epsilon if fits",
        _SHOWN,
    ),
)

PAGES = (
    Mutant(
        12,
        _PAGE,
        "epsilon seems to be spent between two runs",
        "steps=True",
        "steps=False",
        _SHOWN,
    ),
)

FITTING = (
    Mutant(
        12,
        _LEFT,
        "a run too few is said to fit, for a sum that is rounded",
        "(rounded_up(limit) - sofar)",
        "(limit - sofar)",
        _FITS,
    ),
    Mutant(
        12,
        _LEFT,
        "a released run is said to be refused for its noise",
        "known.release is None and not known.covers",
        "not known.covers",
        _FITS,
    ),
    Mutant(
        12,
        _LEFT,
        "Gaussian noise is named where delta is 0",
        'each.method == "laplace" and "gaussian" in each.alternatives',
        'each.method == "laplace"',
        _FITS,
    ),
    Mutant(
        12,
        _LEFT,
        "less than nothing is left for a run",
        "max(0.0, ledger.epsilon - spent) if fits",
        "ledger.epsilon - spent if fits",
        _FITS,
    ),
)
