"""Figures of plans, rows of a table, the last edge of a forest, and whose identity a record has."""

from tests.mutants.mutant import Mutant, Selection

_TABLE = Selection(("tests/core/ranges/test_found.py",), only="errors_of_a_table")
_FOREST = Selection(("tests/core/graphs/test_edges.py",), only="forest_of_forests")
_ROW = Selection(("tests/transforms/test_read_blocks.py",), only="own_row")
_CUT = Selection(("tests/transforms/test_read_batches.py",), only="cut_have_each")
_HALVES = Selection(("tests/core/test_budget.py",), only="half_of_delta_each")
_NEEDED = Selection(("tests/core/threshold/test_task.py",), only="within_alpha_of")


def _figures(task: str) -> Selection:
    return Selection(("tests/pipelines/test_every_figure.py",), tasks=task)


FIGURES = (
    Mutant(
        12,
        "core/ranges/methods.py",
        "methods for rectangles are compared on spread rows alone",
        "_SPREADS = (1.0, 1 / 16, 0.0)",
        "_SPREADS = (1.0, 1.0, 1.0)",
        _figures("ranges"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "cells that a rectangle cuts have no error",
        "_UNEVEN = math.sqrt(2) / 10",
        "_UNEVEN = 0.0",
        _figures("ranges"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "empty boxes have no noise",
        "noisy += made.empty / 2**axes / (1 / variance(boxes.scale) + 1 / noise)",
        "pass",
        _figures("ranges"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "the largest error of a spread counts where methods are compared",
        "math.prod(errors) ** (1 / len(errors))",
        "max(errors)",
        _figures("ranges"),
    ),
    Mutant(
        12,
        "core/centers/coreset.py",
        "three times as large groups are needed",
        "math.ceil(10 * last.sums.scale",
        "math.ceil(30 * last.sums.scale",
        _figures("k_means"),
    ),
    Mutant(
        12,
        "core/centers/coreset.py",
        "the smallest group is that of the first average",
        "self._averages(share)[-1]",
        "self._averages(share)[0]",
        _figures("k_means"),
    ),
    Mutant(
        12,
        "core/centers/coreset.py",
        "the smallest group does not grow with columns",
        "* math.sqrt(setting.grid.dimension))",
        ")",
        _figures("k_means"),
    ),
    Mutant(
        12,
        "core/centers/coreset.py",
        "rows are thought to pull centers from all over the domain",
        "error, tightness = self._space.length(self._space.reach / 3)",
        "error, tightness = self._space.length(self._space.reach)",
        _figures("k_means"),
    ),
    Mutant(
        12,
        "core/threshold/exponential.py",
        "three times as many examples are said to be needed",
        "math.ceil(self.errors(failure) / alpha)",
        "math.ceil(3 * self.errors(failure) / alpha)",
        _figures("threshold"),
    ),
    Mutant(
        12,
        "core/threshold/interior_point.py",
        "three times as many examples are said to be needed",
        "math.ceil(max(self.errors(failure) / alpha, needed))",
        "math.ceil(3 * max(self.errors(failure) / alpha, needed))",
        _figures("threshold"),
    ),
    Mutant(
        12,
        "core/threshold/ranks.py",
        "thresholds are compared by errors and not by examples",
        "            error=needed,\n",
        "            error=errors,\n",
        _figures("threshold"),
    ),
    Mutant(
        12,
        "core/task.py",
        "methods are compared by the arithmetic mean of errors",
        "return math.prod(math.pow(error, 1 / len(errors)) for error in errors)",
        "return math.fsum(errors) / len(errors)",
        _figures("histogram"),
    ),
    Mutant(
        12,
        "core/task.py",
        "methods are compared by the best of their errors",
        "return math.prod(math.pow(error, 1 / len(errors)) for error in errors)",
        "return min(errors)",
        _figures("histogram"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "three times the distance is promised",
        "return 2 * aim.weight * scale * (math.log(size)",
        "return 6 * aim.weight * scale * (math.log(size)",
        _figures("median"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "the typical distance is three times as large",
        "return 2 * aim.weight * scale * math.sqrt(2)",
        "return 6 * aim.weight * scale * math.sqrt(2)",
        _figures("median"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "three times the error of an extreme is promised",
        "error = aim.inside + math.floor(bound)",
        "error = 3 * (aim.inside + math.floor(bound))",
        _figures("minimum"),
    ),
    Mutant(
        12,
        "core/quantiles/exponential.py",
        "the typical error of an extreme is that of its aim",
        "Promises(error, math.hypot(aim.inside, typical))",
        "Promises(error, typical)",
        _figures("minimum"),
    ),
    Mutant(
        12,
        "core/statistics/methods.py",
        "each promise takes all of the failure",
        "return params.failure / max(1, promises)",
        "return params.failure",
        _figures("statistics"),
    ),
    Mutant(
        12,
        "core/statistics/methods.py",
        "ranks of each column take all of the failure",
        "self._failure / (self._groups * self.setting.grid.dimension)",
        "self._failure / self._groups",
        _figures("statistics"),
    ),
    Mutant(
        12,
        "core/quantiles/found.py",
        "a third of the typical error is promised",
        "Promises(math.ceil(worst), typical)",
        "Promises(math.ceil(worst), typical / 3)",
        _figures("quantiles"),
    ),
    Mutant(
        12,
        "core/quantiles/tree.py",
        "three times the error of a tree is promised",
        "return replace(best, error=error)",
        "return replace(best, error=3 * error)",
        _figures("quantiles"),
    ),
    Mutant(
        12,
        "core/quantiles/recursive.py",
        "three times the error is promised",
        "return promised(worst, typical, math.sqrt(base + searched), _OF_SEARCHES)",
        "return promised(3 * worst, typical, math.sqrt(base + searched), _OF_SEARCHES)",
        _figures("quantiles"),
    ),
)

TABLES = (
    Mutant(
        12,
        "core/ranges/found.py",
        "the error of a cell of a table is that of its own noise alone",
        "(1 - 1 / numbers) + whole / numbers**2",
        "(1 - 1 / numbers)",
        _TABLE,
    ),
    Mutant(
        12,
        "core/ranges/found.py",
        "the error of a box is that of its cells' noise",
        '"box_standard_error": np.sqrt(whole)[box]',
        '"box_standard_error": np.sqrt(numbers * variance(self.cell_scale))[box]',
        _TABLE,
    ),
    Mutant(
        12,
        "core/ranges/found.py",
        "the number of rows is that of the boxes' own noise",
        "round(float(self.estimates.sum()))",
        "int(self.boxes.sum())",
        _TABLE,
    ),
)

FORESTS = (
    Mutant(
        12,
        "core/graphs/components.py",
        "a forest has one edge fewer than it may",
        "forest(u, v, nodes - 1)",
        "forest(u, v, nodes - 2)",
        _FOREST,
    ),
)

ROWS = (
    Mutant(
        12,
        "transforms/read_blocks.py",
        "rows that are left out keep the identities of those before",
        "return Block(points, ids[finite])",
        "return Block(points, ids[: len(points)])",
        _ROW,
    ),
    Mutant(
        12,
        "transforms/read_blocks.py",
        "groups of kept rows are those of the first ones",
        "groups=groups[kept], labels=labels",
        "groups=groups[: len(kept)], labels=labels",
        _ROW,
    ),
    Mutant(
        12,
        "transforms/read_batches.py",
        "the last rows of a piece of another format are not read",
        "for first in range(0, batch.num_rows, most):",
        "for first in range(0, max(1, batch.num_rows - most + 1), most):",
        _CUT,
    ),
    Mutant(
        12,
        "transforms/read_batches.py",
        "a batch of another format repeats its first rows",
        "part = batch.slice(first, most)",
        "part = batch.slice(0, min(most, batch.num_rows - first))",
        _CUT,
    ),
)

PARTS = (
    Mutant(
        12,
        "core/budget.py",
        "Gaussians and the composition of all draws share one delta",
        "joint = _zcdp(rho, left / 2)",
        "joint = _zcdp(rho, left)",
        _HALVES,
    ),
    Mutant(
        12,
        "core/threshold/exponential.py",
        "examples needed are rounded down",
        "math.ceil(self.errors(failure) / alpha)",
        "math.floor(self.errors(failure) / alpha)",
        _NEEDED,
    ),
)
