"""Wrong versions of what helps to choose: first jobs, solved values, simulations, differences."""

from tests.mutants.mutant import Mutant, Selection

_FIRST = Selection(("tests/pipelines/choose/test_first_job.py",), "header or every_task or missing")
_SOLVED = Selection(("tests/pipelines/choose/test_solve.py",), "holes or apart or chosen or cell_error")
_SWEPT = Selection(("tests/pipelines/choose/test_sweep.py",), "every_point or typical")
_SIMULATED = Selection(("tests/pipelines/simulation/test_simulate.py",), "noise or any_units")
_COMPARED = Selection(("tests/pipelines/compare/test_compare.py",), "noise or size or judged")
_COLUMNS = Selection(("tests/pipelines/describe/test_columns.py",), "bounds or schema or texts")
_SHOWN = Selection(("tests/pipelines/describe/test_shown.py",))
_LEFT = Selection(("tests/pipelines/ledger/test_left.py",), "how_many_more")

CHOSEN = (
    Mutant(
        12,
        "pipelines/choose/first_job.py",
        "a row in the place of a header is shown",
        "if any(_VALUE.fullmatch(name) for name in names):",
        "if all(_VALUE.fullmatch(name) for name in names):",
        _FIRST,
    ),
    Mutant(
        12,
        "pipelines/choose/solve.py",
        "a value is enough where a method keeps the promise that is not chosen",
        "if enough(i)), None)",
        "if possible(i)), None)",
        _SOLVED,
    ),
    Mutant(
        12,
        "pipelines/choose/solve.py",
        "nothing below the job's own value is tried",
        "below = next((i for i in _below(high) if possible(i)), None)",
        "below = None",
        _SOLVED,
    ),
    Mutant(
        12,
        "pipelines/choose/solve.py",
        "values are a quarter apart",
        "*(1 + 0.05 * i for i in range(20)),",
        "*(1 + 0.25 * i for i in range(4)),",
        _SOLVED,
    ),
    Mutant(
        12,
        "pipelines/choose/sweep.py",
        "every point is planned at the first value",
        "found = plan_raw(set_key(raw, swept.key, value))",
        "found = plan_raw(set_key(raw, swept.key, swept.values[0]))",
        _SWEPT,
    ),
    Mutant(
        12,
        "pipelines/simulation/simulate.py",
        "the noise is drawn once for all runs",
        "[SecureNoise() for _ in range(runs)]",
        "[SecureNoise()] * runs",
        _SIMULATED,
    ),
    Mutant(
        12,
        "pipelines/simulation/statistics_measure.py",
        "a sum is compared with that of steps",
        "column = low + grid.step * self.points[:, value.column]",
        "column = self.points[:, value.column]",
        _SIMULATED,
    ),
    Mutant(
        12,
        "pipelines/compare/compare.py",
        "jobs that ask for different things have the verdict of the same rows",
        '"alike": alike,',
        '"alike": True,',
        Selection(("tests/pipelines/compare/test_compare.py",), "different_things"),
    ),
    Mutant(
        12,
        "core/instants.py",
        "a small duration of a release cannot be read again",
        r"(?:\.[0-9]{1,40})?(?:[eE]",
        r"(?:\.[0-9]{1,18})?(?:[eE]",
        Selection(("tests/core/test_times.py",), "any_size"),
    ),
    Mutant(
        12,
        "pipelines/compare/compare.py",
        "the limit is of one release alone",
        "return errors * math.hypot(a.error, b.error)",
        "return errors * a.error",
        _COMPARED,
    ),
    Mutant(
        12,
        "pipelines/compare/compare.py",
        "many figures have the limit of one",
        "math.log(max(1, figures) / _CHANCE)",
        "math.log(1 / _CHANCE)",
        _COMPARED,
    ),
    Mutant(
        12,
        "pipelines/compare/estimates.py",
        "rows that each run draws anew change no count",
        "math.sqrt(most * max(0, estimate.value))",
        "0.0 * most",
        Selection(("tests/pipelines/compare/test_compare.py",), "draws_anew and histogram"),
    ),
    Mutant(
        12,
        "pipelines/compare/estimates.py",
        "rows that each run draws anew change no median",
        "return replace(estimate, error=None, bound=None, interval=None)",
        "return estimate",
        Selection(("tests/pipelines/compare/test_compare.py",), "draws_anew and median"),
    ),
    Mutant(
        12,
        "pipelines/ledger/left.py",
        "a ledger counts as empty for the runs that fit",
        "runs = _fitting(ledger, charge, *_spent(ledger)[:2])",
        "runs = _fitting(ledger, charge, 0.0, 0.0)",
        _LEFT,
    ),
    Mutant(
        12,
        "pipelines/describe/columns.py",
        "the unit of privacy is left out of the job",
        'optional = {"unit": unit, "types"',
        'optional = {"unit": None, "types"',
        _COLUMNS,
    ),
    Mutant(
        12,
        "pipelines/describe/columns.py",
        "whole numbers of 64 bits are more than an axis may have",
        "bits = min(kind.bit_width, 62)",
        "bits = kind.bit_width",
        _COLUMNS,
    ),
    Mutant(
        12,
        "pipelines/describe/columns.py",
        "texts are asked for without delta",
        "if made.needs_delta and not delta:",
        "if False:",
        _COLUMNS,
    ),
    Mutant(
        12,
        "pipelines/describe/shown.py",
        "a quantile beyond all rows is shown as if it were known",
        "elif not (below or above):",
        "elif first is not None:",
        _SHOWN,
    ),
    Mutant(
        12,
        "pipelines/describe/shown.py",
        "millionths are shown for numbers",
        "number(value / column.parts, 6)",
        "number(value, 6)",
        _SHOWN,
    ),
)
