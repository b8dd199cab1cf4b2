"""Wrong versions of the medians of several columns."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import charged, nothing_but_noise, spent

_COLUMNS = "core/quantiles/columns.py"
_LOOKS = Selection(("tests/core/quantiles/test_columns.py",), "looks_change_no_answer")

COLUMNS = (
    Mutant(
        8,
        _COLUMNS,
        "the draws of the first column alone are charged",
        "for column in self.columns for draw in column.draws()",
        "for column in self.columns[:1] for draw in column.draws()",
        charged("median", "exponential or auto"),
    ),
    Mutant(
        1,
        _COLUMNS,
        "columns without records have no value",
        "return FoundColumns(tuple(found), self.errors)",
        "return FoundColumns(tuple(found) if len(aggregate) else (), self.errors)",
        nothing_but_noise("median", "drawn and auto"),
    ),
    Mutant(
        12,
        _COLUMNS,
        "ranks of cells are not counted from the start of their column",
        "here, before = slice(*ends[at : at + 2]), at * records",
        "here, before = slice(*ends[at : at + 2]), 0",
        _LOOKS,
    ),
    Mutant(
        12,
        _COLUMNS,
        "a cell may be in two columns",
        "focus=Focus(self.starts, np.full(len(self.sizes), width))",
        "focus=Focus(self.starts[[0, -1]], np.array([width]))",
        _LOOKS,
    ),
    Mutant(
        12,
        _COLUMNS,
        "secret pairs are half as far apart in a column",
        "Policy(Distance(min(secrets.theta, extent)))",
        "Policy(Distance(max(1, secrets.theta // 2)))",
        spent("median", "ordered and uniform"),
    ),
)
