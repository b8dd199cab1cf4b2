"""What ledgers admit and say is left, runs that end meanwhile or fail, and values at their edges."""

from tests.mutants.mutant import Mutant, Selection

_LEDGER, _CONTENT, _LEFT = (f"pipelines/ledger/{name}.py" for name in ("ledger", "content", "left"))
_TABLE, _POLICY, _RUN = "pipelines/ledger/table.py", "pipelines/ledger/policy.py", "pipelines/run/run.py"
_SPOILED = Selection(("tests/pipelines/ledger/test_spoiled.py",))
_SAME_LEFT = Selection(("tests/pipelines/ledger/test_left.py",), only="same_is_left")
_ADDS_UP = Selection(("tests/pipelines/ledger/test_table.py",), only="adds_up")
_FAILED = Selection(("tests/pipelines/run/test_failed.py",))
_EDGES = Selection(("tests/transforms/test_expression_edges.py",))

ADMITTED = (
    Mutant(
        8,
        _LEDGER,
        "of two machines that are charged at the same time both draw",
        "if known.release is None and known.output_id not in (None, output_id):",
        "if known.release is None and known.output_id not in (None, output_id) and output_id is None:",
        Selection(("tests/pipelines/test_output_id.py",), only="same_time"),
    ),
    Mutant(
        8,
        _LEDGER,
        "a millionth more than the whole is admitted",
        "if not at_most(spent.epsilon, ledger.epsilon):",
        "if not at_most(spent.epsilon, ledger.epsilon * (1 + 1e-6)):",
        Selection(("tests/pipelines/ledger/test_check_charges.py",), only="beyond_the_whole"),
    ),
    Mutant(
        8,
        _CONTENT,
        "a charge below 0 gives budget back",
        "epsilon: Spent\n    delta: Spent\n    draws",
        "epsilon: float\n    delta: float\n    draws",
        _SPOILED,
    ),
    Mutant(
        12,
        _CONTENT,
        "a run may be in a ledger twice",
        "if len(set(runs)) < len(runs):",
        "if len(set(runs)) < len(runs) - 1:",
        _SPOILED,
    ),
    Mutant(
        12,
        _LEFT,
        "runs like the first one are said to fit as often as those like the last",
        "last = ledger.charges[-1]",
        "last = ledger.charges[0]",
        Selection(("tests/pipelines/ledger/test_left.py",), only="how_many_more"),
    ),
    Mutant(
        6,
        _LEFT,
        "a plan says that all of delta is left, where half of it is for the composition",
        "max(0.0, most - delta) if fits else None,",
        "max(0.0, ledger.delta - delta) if fits else None,",
        _SAME_LEFT,
    ),
    Mutant(
        6,
        _TABLE,
        "a ledger says that all of delta is left, where half of it is for the composition",
        '"left_delta": max(0.0, most - delta)',
        '"left_delta": max(0.0, ledger.delta - delta)',
        _ADDS_UP,
    ),
    Mutant(
        12,
        _TABLE,
        "a run counts as its epsilon, where its draws are composed",
        "counted = filter_spend([charge], budget, ledger.order).epsilon",
        "counted = charge.budget.epsilon",
        _ADDS_UP,
    ),
    Mutant(
        12,
        _TABLE,
        "a run is said to be released once its folder has an id",
        '"yes" if entry["release"] else "not yet"',
        '"yes" if entry["output_id"] else "not yet"',
        Selection(("tests/pipelines/ledger/test_table.py",), only="charge_says_so"),
    ),
    Mutant(
        12,
        _POLICY,
        "a number that is read as a timestamp leaves the same rows out as a number",
        "and not (name in times and pa.types.is_timestamp(kind))",
        "and not pa.types.is_timestamp(kind)",
        Selection(("tests/pipelines/ledger/test_policy.py",), only="same_rows"),
    ),
    Mutant(
        8,
        _RUN,
        "a run that another process has finished meanwhile is drawn again",
        "return delivery, delivery.check_charge(entry)",
        "return delivery, False",
        Selection(("tests/pipelines/ledger/test_ledger.py",), only="comes_while"),
    ),
    Mutant(
        12,
        _RUN,
        "a release that a failed pipeline left does not count",
        "        if delivery.find() is not None:\n            return True\n",
        "",
        _FAILED,
    ),
    Mutant(
        12,
        _RUN,
        "whoever is not charged is told that another try costs nothing more",
        "if not isinstance(error, RunError) or delivery.charged is None:",
        "if not isinstance(error, RunError):",
        _FAILED,
    ),
    Mutant(
        12,
        "pipelines/report/report.py",
        "a report has the odds of the delta that may be spent",
        '"odds": f"1 in {number(1 / delta)}" if delta else None',
        '"odds": f"1 in {number(1 / privacy[\'delta\'])}" if delta else None',
        Selection(("tests/pipelines/report/test_report.py",), only="how_often"),
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "a text is as long as it has bytes",
        "return pc.cast(pc.utf8_length(value), INTEGER)",
        "return pc.cast(pc.binary_length(value), INTEGER)",
        _EDGES,
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "null and false is null",
        'return reduce(pc.and_kleene if function == "and" else pc.or_kleene, values)',
        'return reduce(pc.and_ if function == "and" else pc.or_, values)',
        _EDGES,
    ),
    Mutant(
        12,
        "transforms/evaluate_expression.py",
        "the absolute value of the least whole number is below 0",
        'return pc.if_else(pc.less(value, 0), _exact("-", pa.scalar(0, INTEGER), value), value)',
        "return pc.abs(value)",
        _EDGES,
    ),
    Mutant(
        12,
        "transforms/unit_keys.py",
        "a date with a time of the day is another unit",
        "return pa.array(parts // _DAY, mask=missing)",
        "return pa.array(parts, mask=missing)",
        Selection(("tests/transforms/test_unit_keys.py",), only="time_of_the_day"),
    ),
)
"""What earlier tests of these places let through."""
