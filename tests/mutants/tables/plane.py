"""Wrong versions of the medians of several columns, and of counts of rectangles."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import charged, nothing_but_noise, spent

_COLUMNS = "core/quantiles/columns.py"
_ROUNDS = "core/ranges/rounds.py"
_METHODS = "core/ranges/methods.py"
_FOUND = "core/ranges/found.py"
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
        "noise))\n        return FoundColumns(tuple(found), self.errors)",
        "noise))\n        return FoundColumns(tuple(found) if len(aggregate) else (), self.errors)",
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

RANGES = (
    Mutant(
        1,
        _ROUNDS,
        "the exact counts of boxes decide on their cells",
        "parts_of_boxes(state, noisy, self.epsilon)",
        "parts_of_boxes(state, _dense(aggregate, len(state)), self.epsilon)",
        nothing_but_noise("ranges", "drawn"),
    ),
    Mutant(
        1,
        _ROUNDS,
        "the exact number of rows decides on the grid",
        "most = boxes_of_axis(float(records[0])",
        "most = boxes_of_axis(1e4 * float(aggregate.totals[0])",
        nothing_but_noise("ranges", "drawn and grid"),
    ),
    Mutant(
        8,
        _ROUNDS,
        "counts of boxes are not charged",
        "return self.boxes, self.cells",
        "return (self.cells,)",
        charged("ranges"),
    ),
    Mutant(
        7,
        _METHODS,
        "a replaced record is charged for one change",
        "self.setting.neighbors.histogram().l1",
        "self.setting.neighbors.count()",
        spent("ranges", "uniform"),
    ),
    Mutant(
        7,
        _METHODS,
        "a replaced record is one change for the splits",
        "(1 - sum(self.parts)) * epsilon, neighbors.changes)",
        "(1 - sum(self.parts)) * epsilon)",
        Selection(("tests/core/ranges/test_found.py",), "splits_are_charged"),
    ),
    Mutant(
        7,
        _ROUNDS,
        "cells have half the noise",
        "counts = self.cells.add(exact, noise)",
        "counts = self.cells.add(exact, noise, unit=0.5)",
        spent("ranges", "uniform"),
    ),
    Mutant(
        12,
        _FOUND,
        "a rectangle holds the cells that it touches at least",
        "self._sum(shares == 1)",
        "self._sum(shares > 0)",
        Selection(("tests/core/ranges/test_found.py",), "bounds_of_all"),
    ),
    Mutant(
        12,
        _FOUND,
        "estimates of cells take the count of their box for exact",
        "return np.asarray(of_sum / (of_sum + variance(self.box_scale)))",
        "return np.ones(len(of_sum))",
        Selection(("tests/core/ranges/test_found.py",), "standard_error or inference"),
    ),
)
