"""What is chosen before a run, and what a policy is: parts whose own tests had left something open."""

from tests.mutants.mutant import Mutant, Selection

_POLICY, _COUNTS = "core/policy.py", "core/histogram/constraints.py"
_POLICIES = ("tests/core/test_policies.py",)
_REFUSED = Selection(_POLICIES, only="are_refused")
_TAKEN = Selection(_POLICIES, only="up_to_its_ends")
_REACH = Selection(_POLICIES, only="test_reach")
_KNOWN = ("tests/core/histogram/test_constraints.py",)
_TOTAL = Selection(_KNOWN, only="of_all_records")
_DENSE, _CELLS = "core/histogram/dense.py", ("tests/core/histogram/test_task.py",)
_DESCRIBED, _OF_DESCRIBED = "pipelines/describe/columns.py", ("tests/pipelines/describe/test_columns.py",)
_BUDGET = Selection(_OF_DESCRIBED, only="all_of_the_budget")
_TEXTS = Selection(_OF_DESCRIBED, only="of_any_size")
_NAMES = Selection(_OF_DESCRIBED, only="name_of_its_numbers")
_FIRST, _OF_FIRST = "pipelines/choose/first_job.py", ("tests/pipelines/choose/test_first_job.py",)
_AXIS = Selection(_OF_FIRST, only="of_an_axis")
_LISTED = Selection(_OF_FIRST, only="up_to_a_hundred")
_SHOWN = Selection(_OF_FIRST, only="no_others")
_FILLED = Selection(_OF_FIRST, only="can_be_planned and csv-median")
_NEEDS, _OF_NEEDS = "pipelines/needs.py", ("tests/pipelines/test_shared_needs.py",)
_WAITING = Selection(_OF_NEEDS, only="wait_for_those")
_WORST = Selection(_OF_NEEDS, only="the_worst_is_told")
_READ, _OF_READ = "pipelines/describe/shown.py", ("tests/pipelines/describe/test_shown.py",)
_KNOWN_AT_END = Selection(_OF_READ, only="known_also_at_an_end")
_CURVES, _SWEEPS = "pipelines/choose/curves.py", "tests/pipelines/choose/test_sweep.py"
_LINE = Selection((_SWEEPS,), only="a_line_shows")
_EDGE = Selection(("tests/pipelines/choose/test_curves.py",), only="at_the_edge")
_PAGE = Selection(("tests/pipelines/choose/test_curves.py",), only="of_every_promise")
_SWEEP = "pipelines/choose/sweep.py"
_DOTS = Selection((_SWEEPS,), only="have_dots")
_TEXT, _OF_TEXT = "pipelines/job/text.py", ("tests/pipelines/job/test_text.py",)
_DEMO, _OF_DEMO = "pipelines/demo.py", ("tests/pipelines/test_demo.py",)
_LINK = Selection(_OF_DEMO, only="not_followed")
_SHARED = Selection(_OF_DEMO, only="share_the_budget")
_QUANTITIES, _DIGITS = "pipelines/quantities.py", Selection(("tests/pipelines/test_quantities.py",))
_EARTH, _ENDS = "core/geography.py", Selection(("tests/core/test_geography.py",), only="have_one_name")
_WIDTH = Selection(("tests/core/test_geography.py",), only="as_the_region_is_wide")
_WRONG = Selection((_SWEEPS,), only="wrong_arguments")
_JOINT, _RELEASED = "pipelines/joint_plan.py", "pipelines/joint_release.py"
_GROUPED, _GATHERED = "pipelines/grouped_plan.py", "pipelines/grouped_release.py"
_TOGETHER = ("tests/pipelines/test_joint_release.py",)
_QUESTIONS = Selection(_TOGETHER, only="all_questions")
_GROUPS = Selection(_TOGETHER, only="all_groups")
_ORDER = Selection(_TOGETHER, only="order_of_the_job")
_OTHER = Selection(_TOGETHER, only="is_not_taken")
_EACH = Selection(_TOGETHER, only="has_its_own_answer or their_keys")
_SOLVE, _OF_SOLVE = "pipelines/choose/solve.py", ("tests/pipelines/choose/test_solve.py",)

POLICIES = (
    Mutant(
        12,
        _POLICY,
        "a part that is wider than the domain reaches beyond it",
        "return sum(min(width - 1, extent) for",
        "return sum(width - 1 for",
        _REACH,
    ),
    Mutant(
        12,
        _POLICY,
        "a distance of several columns is refused",
        "if self.theta > sum(extents):",
        "if self.theta > max(extents):",
        _TAKEN,
    ),
    Mutant(
        12,
        _POLICY,
        "the distance of the whole domain is refused",
        "if self.theta > sum(extents):",
        "if self.theta >= sum(extents):",
        _TAKEN,
    ),
    Mutant(12, _POLICY, "a distance below 0 is taken", "min(self.thetas) < 0 or max", "max", _REFUSED),
    Mutant(12, _POLICY, "distances that hide nothing are taken", " or max(self.thetas) < 1", "", _REFUSED),
    Mutant(
        12,
        _POLICY,
        "distances of other columns are taken",
        "if len(self.thetas) != len(extents):",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge joins points of different spaces",
        "if len(x) != len(y) or x == y:",
        "if x == y:",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge begins below the grid",
        "not 0 <= x <= e for x, e",
        "not x <= e for x, e",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge has other columns than the grid",
        "if len(point) != len(extents) or any(",
        "if any(",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "a known count begins below the grid",
        "low < 0 or high > extent",
        "high > extent",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "a box that begins at the edge has a cell before it",
        "for x in (low, high + 1) if x > 0]",
        "for x in (low, high + 1)]",
        _TAKEN,
    ),
)

COUNTS = (
    Mutant(
        12,
        _COUNTS,
        "a change may move the known number of all records",
        "[axis[axis <= extent] for axis, extent",
        "[axis for axis, extent",
        _TOTAL,
    ),
    Mutant(
        12,
        _COUNTS,
        "known counts are examined however many atoms they make",
        "if boxes.disjoint or boxes.atoms > _ATOMS:\n        return",
        "if boxes.disjoint:\n        return",
        Selection(_KNOWN, only="too_many_atoms"),
    ),
    Mutant(
        12,
        _COUNTS,
        "cells outside of overlapping known counts have fewer than 0 records",
        "(*self.regions, (...,))",
        "self.regions",
        Selection(_KNOWN, only="outside_of_overlapping"),
    ),
    Mutant(
        12,
        _COUNTS,
        "the smallest remainders are rounded up",
        "np.argsort(down - values,",
        "np.argsort(values - down,",
        Selection(_KNOWN, only="a_record_too_few"),
    ),
)

ERRORS = (
    Mutant(
        12,
        _DENSE,
        "an error is promised of cells whose known counts overlap",
        "if not self.consistency.disjoint:",
        "if False:",
        Selection(_CELLS, only="overlap_no_error"),
    ),
    Mutant(
        12,
        _DENSE,
        "an error that is rare is said to be reached",
        '{"cell_error": _CONSISTENT}',
        '{"cell_error": _REACHED}',
        Selection(_CELLS, only="known_counts_are_kept"),
    ),
)

DESCRIBED = (
    Mutant(
        12,
        _DESCRIBED,
        "quantiles of a column pay for checks",
        '"params": params, "checks": 0}',
        '"params": params}',
        _BUDGET,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "values of a column pay for checks",
        '"group_by": groups, **bounds, "checks": 0}',
        '"group_by": groups, **bounds}',
        _BUDGET,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "nulls of columns pay for checks",
        '"params": {"measures": ["count", "mean"]},\n        "checks": 0,',
        '"params": {"measures": ["count", "mean"]},',
        _BUDGET,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "shares of nulls have the noise of numbers up to 2",
        '"upper": [1] * len(nulls), "step": 1}',
        '"upper": [2] * len(nulls), "step": 1}',
        _BUDGET,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "texts have ten times the budget of numbers",
        '"domain": domain, "params": params}\n    return {**counted',
        '"domain": domain, "params": params, "share": 10}\n    return {**counted',
        _BUDGET,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "the folder of the release is not the one that is given",
        'output = job.pop("output", "releases/{run_id}")',
        'output = job.pop("output", "") and "releases/{run_id}"',
        _TEXTS,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "long texts are not described",
        " or pa.types.is_large_string(kind)",
        "",
        _TEXTS,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "decimal numbers are not described",
        " or pa.types.is_decimal(kind)",
        "",
        Selection(_OF_DESCRIBED, only="of_its_type"),
    ),
    Mutant(
        12,
        _DESCRIBED,
        "a text with the name of a second count is described",
        "(_[0-9]+)?(_error|_low|_high)?",
        "(_error|_low|_high)?",
        _NAMES,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "a text with the name of an end is described",
        "(_[0-9]+)?(_error|_low|_high)?",
        "(_[0-9]+)?(_error)?",
        _NAMES,
    ),
    Mutant(
        12,
        _DESCRIBED,
        "a column of parts may be in the file already",
        "for name in (*derived, *nulls) if",
        "for name in nulls if",
        Selection(_OF_DESCRIBED, only="bad_input"),
    ),
)

FIRST_JOBS = (
    Mutant(
        12,
        _FIRST,
        "times have bounds of a zone",
        "return _TIMES if kind.tz is None else _ZONED",
        "return _ZONED",
        _AXIS,
    ),
    Mutant(
        12,
        _FIRST,
        "times of a zone have bounds without one",
        "return _TIMES if kind.tz is None else _ZONED",
        "return _TIMES",
        _AXIS,
    ),
    Mutant(
        12,
        _FIRST,
        "times are no axes",
        "for bounds in (_NUMBERS, _DATES, _TIMES, _ZONED):",
        "for bounds in (_NUMBERS, _DATES):",
        _AXIS,
    ),
    Mutant(
        12,
        _FIRST,
        "decimal numbers are no axes",
        " or pa.types.is_decimal(kind)",
        "",
        _AXIS,
    ),
    Mutant(
        12,
        _FIRST,
        "dates are ids of nodes",
        "if axes and (times or bounds is None):",
        "if axes:",
        _AXIS,
    ),
    Mutant(
        12,
        _FIRST,
        "all columns of a wide file are listed",
        "others[:_MOST]",
        "others",
        _LISTED,
    ),
    Mutant(
        12,
        _FIRST,
        "more columns are said to be left out",
        "len(others) - _MOST} more",
        "len(others)} more",
        _LISTED,
    ),
    Mutant(
        12,
        _FIRST,
        "a file without axes has other columns",
        '"The other columns" if axes else "The columns"',
        '"The other columns"',
        _LISTED,
    ),
    Mutant(
        12,
        _FIRST,
        "a graph is said to have units",
        'if key.name in ("input.unit", "input.keep") and not task.keeps:',
        "if False:",
        _SHOWN,
    ),
    Mutant(
        12,
        _FIRST,
        "a condition on rows is not shown",
        '"input.keep", "input.where", ',
        '"input.keep", ',
        _SHOWN,
    ),
    Mutant(
        12,
        _FIRST,
        "keys that may be left out are set",
        'yield f"{indent}# {name}:{default}"',
        'yield f"{indent}{name}:{default}"',
        _SHOWN,
    ),
    Mutant(
        12,
        _FIRST,
        "the file is to be filled in",
        'found if path is None else {**found, ("input", "path"): path}',
        "found",
        _FILLED,
    ),
    Mutant(
        12,
        _FIRST,
        "ten times the budget is suggested",
        '("privacy", "epsilon"): 1.0',
        '("privacy", "epsilon"): 10.0',
        _FILLED,
    ),
)

NEEDS = (
    Mutant(
        12,
        _NEEDS,
        "counts of all questions are at work at once",
        "turn, later = others[: LARGE_IN_A_TURN - 1], others[LARGE_IN_A_TURN - 1 :]",
        "turn, later = others, others[:0]",
        _WAITING,
    ),
    Mutant(
        12,
        _NEEDS,
        "counts that wait take nothing",
        "waiting = _WAITING * sum(own.bytes for own in turn)",
        "waiting = 0",
        _WAITING,
    ),
    Mutant(
        12,
        _NEEDS,
        "counts that wait take as much as those at work",
        "waiting = _WAITING * sum(own.bytes for own in turn)",
        "waiting = sum(own.bytes for own in turn)",
        _WAITING,
    ),
    Mutant(
        12,
        _NEEDS,
        "what many questions release takes nothing",
        "released = _RELEASED * sum(own.counts for own in later if own.dense)",
        "released = 0",
        Selection(("tests/pipelines/test_shared_needs.py",), only="release"),
    ),
    Mutant(
        12,
        _NEEDS,
        "the fewest counts are named",
        "max(each.counts for each in held))}",
        "min(each.counts for each in held))}",
        _WAITING,
    ),
    Mutant(
        12,
        _NEEDS,
        "a large number of counts is not named",
        "if counts < _MANY else",
        "if counts > _MANY else",
        _WAITING,
    ),
    Mutant(
        12,
        _NEEDS,
        "columns of a joined table take nothing",
        "(given.join.on, *(given.join.columns or ()))",
        "(given.join.on,)",
        Selection(_OF_NEEDS, only="joined_table"),
    ),
    Mutant(
        12,
        _NEEDS,
        "groups of the smallest question take memory",
        "max((own.bytes for own in apart), default=0)",
        "min((own.bytes for own in apart), default=0)",
        _WORST,
    ),
    Mutant(
        12,
        _NEEDS,
        "further groups of all questions add up",
        "max((own.bytes for own in apart), default=0)",
        "sum(own.bytes for own in apart)",
        _WORST,
    ),
    Mutant(
        12,
        _NEEDS,
        "a group of few rows takes little though one question is dense",
        "if any(own.dense for own in apart)",
        "if all(own.dense for own in apart)",
        _WORST,
    ),
    Mutant(
        12,
        _NEEDS,
        "a question without groups has further ones",
        "len(of_question) > 1]",
        "len(of_question) >= 1]",
        Selection(_OF_NEEDS, only="wait_for_those or the_worst"),
    ),
)

SOLVED = (
    Mutant(
        12,
        _SOLVE,
        "a value beyond all that are tried ends in an error",
        "near = min(max(part, values[0]), values[-1])",
        "near = max(part, values[0])",
        Selection(_OF_SOLVE, only="no_job_may_have"),
    ),
    Mutant(
        12,
        _SOLVE,
        "a value of 0 or below ends in an error",
        "near = min(max(part, values[0]), values[-1])",
        "near = min(part, values[-1])",
        Selection(_OF_SOLVE, only="no_job_may_have"),
    ),
    Mutant(
        12,
        _SOLVE,
        "a target of a question whose name has dots is unknown",
        'if inside and key.endswith(f".{each}")',
        'if inside and key.split(".", 2)[2] == each',
        _DOTS,
    ),
)

READ = (
    Mutant(
        12,
        _READ,
        "a known quantile at an end is shown as if it were not",
        "        if first == last:\n            known.append(shown(value))\n        elif",
        "        if",
        _KNOWN_AT_END,
    ),
    Mutant(
        12,
        _READ,
        "an interval is shown from a hundredfold on",
        "_TENFOLD, _MANY_STEPS = 10, 100",
        "_TENFOLD, _MANY_STEPS = 100, 100",
        _KNOWN_AT_END,
    ),
)

CURVES = (
    Mutant(
        12,
        _CURVES,
        "a curve begins at errors of 0",
        ").shown if value > 0\n",
        ").shown\n",
        _EDGE,
    ),
    Mutant(
        12,
        _CURVES,
        "what is typical is a line where it is not known",
        '"─" if "typical" in at else "·"',
        '"─"',
        _LINE,
    ),
    Mutant(
        12,
        _CURVES,
        "a band ends before its end",
        'range(at["low"], at["high"] + 1)',
        'range(at["low"], at["high"])',
        _LINE,
    ),
    Mutant(
        12,
        _CURVES,
        "an error of 0 has a logarithm",
        "math.log(max(value, low) / low)",
        "math.log(value / low)",
        _EDGE,
    ),
    Mutant(
        12,
        _CURVES,
        "a band begins below its axis",
        '"y": y.place(max(low, each.low))',
        '"y": y.place(each.low)',
        _EDGE,
    ),
    Mutant(
        12,
        _CURVES,
        "points lie below their axis",
        '"y": y.place(max(low, value))',
        '"y": y.place(value)',
        _EDGE,
    ),
    Mutant(
        12,
        _CURVES,
        "the smallest error is on the axis",
        "low / 1.1, high * 1.1",
        "low, high * 1.1",
        _EDGE,
    ),
    Mutant(
        12,
        _CURVES,
        "a page has the first promise alone",
        "for name in curve.drawn\n    ]\n    title",
        "for name in curve.drawn[:1]\n    ]\n    title",
        _PAGE,
    ),
    Mutant(
        12,
        _CURVES,
        "a method is named once for each question",
        '", ".join(dict.fromkeys(point.methods))',
        '", ".join(point.methods)',
        Selection(("tests/pipelines/choose/test_curves.py",), only="a_terminal_shows"),
    ),
)

SWEPT = (
    Mutant(
        12,
        _SWEEP,
        "a range of threefold is cut into equal distances",
        "_WIDE = 3.0",
        "_WIDE = 30.0",
        Selection((_SWEEPS,), only="distances_or_ratios"),
    ),
    Mutant(
        12,
        _SWEEP,
        "a range of one value is taken",
        "if not -math.inf < low < high < math.inf:",
        "if not -math.inf < low <= high < math.inf:",
        _WRONG,
    ),
    Mutant(
        12,
        _SWEEP,
        "a range without an end is taken",
        "if not -math.inf < low < high < math.inf:",
        "if not -math.inf < low < high:",
        _WRONG,
    ),
)

TOGETHER = (
    Mutant(
        6,
        _JOINT,
        "a delta beyond the budget is spent",
        " and deltas <= budget.delta",
        "",
        Selection(_TOGETHER, only="beyond_the_budget"),
    ),
    Mutant(
        12,
        _JOINT,
        "the budget is said to be spent by all questions",
        '"spent": plan.spend.epsilon,',
        '"spent": job.privacy.epsilon,',
        _QUESTIONS,
    ),
    Mutant(
        12,
        _JOINT,
        "the delta of the budget is said to be spent by all questions",
        '"spent_delta": plan.spend.delta,',
        '"spent_delta": job.privacy.delta,',
        _QUESTIONS,
    ),
    Mutant(
        12,
        _JOINT,
        "a plan says nothing of its ledger",
        ', "ledger": job.privacy.ledger}',
        "}",
        _QUESTIONS,
    ),
    Mutant(
        12,
        _JOINT,
        "a plan says that questions have equal shares",
        '"share": job.shares[name]',
        '"share": 1.0',
        _QUESTIONS,
    ),
    Mutant(
        12,
        _RELEASED,
        "one question that found nothing is all that is said",
        'found = any(answer["outcome"]',
        'found = all(answer["outcome"]',
        _ORDER,
    ),
    Mutant(
        11,
        _RELEASED,
        "answers are in the order of their arrival",
        "ordered = {name: by_name[name] for name in draft.answers}",
        "ordered = by_name",
        _ORDER,
    ),
    Mutant(
        12,
        _RELEASED,
        "counts of checks are left out of an answer",
        "return {**task, **own, **answered(finding, grid)}",
        "return {**task, **draft.answers[name], **answered(finding, grid)}",
        Selection(_TOGETHER, only="checks_of_a_question"),
    ),
    Mutant(
        12,
        _RELEASED,
        "the table of another question is taken",
        ' or held.get("question") != name',
        "",
        _OTHER,
    ),
    Mutant(
        12,
        _RELEASED,
        "a second draw of a table is shown beside the first",
        'stored = made if folder.create(file, made) else folder.read(file) or b""',
        "stored = made if folder.create(file, made) else made",
        _OTHER,
    ),
    Mutant(
        12,
        _GROUPED,
        "all groups are said to have the budget of one",
        '"epsilon": job.privacy.epsilon,\n        "delta"',
        '"epsilon": plan.budget.epsilon,\n        "delta"',
        _GROUPS,
    ),
    Mutant(
        12,
        _GROUPED,
        "the neighbors of one group are said of all",
        '        "neighbors": job.privacy.neighbors,\n',
        "",
        _GROUPS,
    ),
    Mutant(
        12,
        _GROUPED,
        "what is kept of units is not said",
        '        "keep": job.keep,\n',
        "",
        _GROUPS,
    ),
    Mutant(
        12,
        _GROUPED,
        "all groups are said to spend the delta of one",
        '"spent_delta": plan.spend.delta,',
        '"spent_delta": plan.each.spend.delta,',
        _GROUPS,
    ),
    Mutant(
        12,
        _GROUPED,
        "a group is said to spend all that it may",
        '"spent": own.epsilon,',
        '"spent": plan.budget.epsilon,',
        _GROUPS,
    ),
    Mutant(
        12,
        _GROUPED,
        "a unit in two groups is said to be in one",
        'if plan.copies > 1 else " in at most one group"',
        'if plan.copies > 2 else " in at most one group"',
        _GROUPS,
    ),
    Mutant(
        11,
        _GATHERED,
        "groups are in the order of their arrival",
        "sorted(states, key=lambda pair: pair[0])",
        "states",
        _EACH,
    ),
    Mutant(
        12,
        _GATHERED,
        "one group that found nothing is all that is said",
        'found = any(group["result"]',
        'found = all(group["result"]',
        _EACH,
    ),
    Mutant(
        12,
        _GATHERED,
        "checks of a group are left out",
        "if isinstance(state, Checked):",
        "if False:",
        _EACH,
    ),
    Mutant(
        12,
        _GATHERED,
        "checks of a group are those of no rows",
        'group["checks"] = own["checks"]',
        'group["checks"] = draft.whole["checks"]',
        _EACH,
    ),
)

KEYS = (
    Mutant(
        12,
        _TEXT,
        "a key is set beside the question whose name has dots",
        "range(len(parents), 0, -1)",
        "range(1, 0, -1)",
        Selection(_OF_TEXT, only="name_with_dots"),
    ),
    Mutant(
        12,
        _TEXT,
        "the shortest name that is there is taken",
        "range(len(parents), 0, -1)",
        "range(1, len(parents) + 1)",
        Selection(_OF_TEXT, only="name_with_dots"),
    ),
    Mutant(
        12,
        _TEXT,
        "a key is set wherever its mapping stands",
        "place = dict(inner)",
        "place = inner",
        Selection(_OF_TEXT, only="one_place_alone"),
    ),
)

DEMO = (
    Mutant(
        12,
        _DEMO,
        "a link to a folder of somebody else is taken for releases",
        "own = entry.is_dir(follow_symlinks=False)",
        "own = entry.is_dir()",
        _LINK,
    ),
    Mutant(
        12,
        _DEMO,
        "a link to a file of somebody else is taken for the job",
        "entry.is_file(follow_symlinks=False)",
        "entry.is_file()",
        _LINK,
    ),
    Mutant(
        12,
        _DEMO,
        "a link to nowhere is taken for a new folder",
        "if not os.path.lexists(folder):",
        "if not os.path.exists(folder):",
        _LINK,
    ),
    Mutant(
        12,
        _DEMO,
        "the demo spends a thousand times the delta",
        "delta: 1.0e-6, neighbors",
        "delta: 1.0e-3, neighbors",
        _SHARED,
    ),
)

QUANTITIES = (
    Mutant(
        12,
        _QUANTITIES,
        "degrees of a coarse grid have no decimals",
        "max(1, math.ceil(math.log10(",
        "max(0, math.ceil(math.log10(",
        _DIGITS,
    ),
    Mutant(
        12,
        _QUANTITIES,
        "a distance below 0 is in metres",
        "if abs(self) >= _KILOMETRE else",
        "if self >= _KILOMETRE else",
        _DIGITS,
    ),
    Mutant(
        12,
        _QUANTITIES,
        "a kilometre is 1,000 metres",
        "if abs(self) >= _KILOMETRE else",
        "if abs(self) > _KILOMETRE else",
        _DIGITS,
    ),
    Mutant(
        12,
        _QUANTITIES,
        "a copy of a large number is rounded",
        "return Amount, (self.value, self.unit, self.step)",
        "return Amount, (float(self), self.unit, self.step)",
        _DIGITS,
    ),
    Mutant(
        12,
        _QUANTITIES,
        "a large number is rounded to a float",
        'f"{decimal(self.value, self.step)} {self.unit}"',
        'f"{decimal(float(self), self.step)} {self.unit}"',
        _DIGITS,
    ),
)

GEOGRAPHY = (
    Mutant(
        12,
        _EARTH,
        "a step is at most the radius of a region",
        "widest = 2 * RADIUS * math.sin(",
        "widest = RADIUS * math.sin(",
        _WIDTH,
    ),
    Mutant(
        12,
        _EARTH,
        "a region beyond half of the Earth is narrower",
        "math.sin(min(made._middle[1], math.pi / 2))",
        "math.sin(made._middle[1])",
        _WIDTH,
    ),
    Mutant(
        12,
        _EARTH,
        "the date line has two names",
        "-180.0 if west == 180 else west",
        "west",
        _ENDS,
    ),
    Mutant(
        12,
        _EARTH,
        "rows at the bounds are outside of them",
        "(values < self.south) | (values > self.north)",
        "(values <= self.south) | (values >= self.north)",
        _ENDS,
    ),
    Mutant(
        12,
        _EARTH,
        "a place is at -0°",
        "np.asarray(rounded + 0.0)",
        "np.asarray(rounded)",
        _ENDS,
    ),
)
