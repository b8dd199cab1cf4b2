"""Wrong versions of what stands around a run: ledgers, folders, simulations, files of rows that wait."""

from tests.mutants.mutant import Mutant, Selection

_LEDGER, _CONTENT = "pipelines/ledger/ledger.py", "pipelines/ledger/content.py"
_LEFT, _TABLE = "pipelines/ledger/left.py", "pipelines/ledger/table.py"
_CHARGES = "tests/pipelines/ledger/test_ledger.py"
_TWICE = Selection(("tests/pipelines/ledger/test_left.py",), "count_twice")

LEDGERS = (
    Mutant(
        12,
        _LEDGER,
        "the release of one run marks every run of its ledger as released",
        "marked if entry is known else entry",
        "marked",
        Selection((_CHARGES,), "marked_once"),
    ),
    Mutant(
        12,
        _LEDGER,
        "a ledger that is made as an error says is not one of records that a count says",
        '        "count": job.count,\n',
        "",
        Selection((_CHARGES,), "made_for_the_promise"),
    ),
    Mutant(
        8,
        _CONTENT,
        "a charge covers a run that has one more draw",
        "return len(planned) == len(self.draws) and all(",
        "return all(",
        Selection((_CHARGES,), "covers_no_draw"),
    ),
    Mutant(
        12,
        _CONTENT,
        "a ledger of a unit has a count, so that nobody can say what it hides",
        "if self.count is not None and (self.unit is not None or self.policy is not None):",
        "if self.count is not None and self.policy is not None:",
        Selection(("tests/pipelines/ledger/test_policy.py",), "no_whole_rows"),
    ),
    Mutant(
        7,
        _LEFT,
        "twice as many runs of a job are said to fit as a ledger of replace_one admits",
        "charge = entry_of(ledger, job, planned, now()).charge(ledger.neighbors)",
        "charge = entry_of(ledger, job, planned, now()).charge(job.privacy.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "a plan says that twice as many runs fit as a ledger of replace_one admits",
        "planned = entry_of(ledger, job, plan, now()).charge(ledger.neighbors)",
        "planned = entry_of(ledger, job, plan, now()).charge(job.privacy.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "twice as many runs like the last one are said to fit as a ledger of replace_one admits",
        "last.charge(ledger.neighbors)",
        "last.charge(last.neighbors)",
        _TWICE,
    ),
    Mutant(
        7,
        _LEFT,
        "half of what was spent under replace_one is said to be left",
        "charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]",
        "charges = [entry.charge(entry.neighbors) for entry in ledger.charges]",
        _TWICE,
    ),
    Mutant(
        7,
        _TABLE,
        "charges are shown with half of what they count under replace_one",
        "charges = [entry.charge(ledger.neighbors) for entry in ledger.charges]",
        "charges = [entry.charge(entry.neighbors) for entry in ledger.charges]",
        _TWICE,
    ),
    Mutant(
        12,
        _LEFT,
        "a question with Gaussian noise hides that another one could have it",
        "return any(_may_be_gaussian(",
        "return all(_may_be_gaussian(",
        Selection(("tests/pipelines/ledger/test_left.py",), "one_question"),
    ),
    Mutant(
        12,
        _TABLE,
        "a ledger of units is shown as one of rows",
        'if ledger["unit"] else ""',
        'if not ledger["unit"] else ""',
        Selection(("tests/pipelines/ledger/test_table.py",), "promises_is_shown"),
    ),
)
