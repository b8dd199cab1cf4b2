"""What comes or is handled some at a time, weights of a solver, names of one hash, counts on a wide grid."""

from tests.mutants.mutant import Mutant, Selection

_CHUNKS = Selection(("tests/core/centers/test_space.py",))
_SOLVER = "core/centers/solver.py"
_MESSAGES = Selection(("tests/transforms/test_function_messages.py",))
_BEST = Selection(("tests/core/centers/test_solver.py",))

CHUNKS = (
    Mutant(
        12,
        "core/centers/space.py",
        "the first domain that is too wide is not refused",
        "if self.grid.bounding_radius >= 1 << _REACH_BITS:",
        "if self.grid.bounding_radius > 1 << _REACH_BITS:",
        _CHUNKS,
    ),
    Mutant(
        12,
        "core/centers/parts.py",
        "records beyond the first chunk have the parts of the first ones",
        "            start += len(records)\n            moved",
        "            moved",
        _CHUNKS,
    ),
    Mutant(
        12,
        "core/centers/space.py",
        "a chunk loses its last record",
        "part = (points[start : start + rows] - self.middle)",
        "part = (points[start : start + max(1, rows - 1)] - self.middle)",
        _CHUNKS,
    ),
)

SOLVED = (
    Mutant(
        12,
        _SOLVER,
        "of several starts one is kept that costs more",
        "if cost < least:",
        "if least == math.inf or cost > least:",
        _BEST,
    ),
    Mutant(
        12,
        _SOLVER,
        "starts are compared as if all points weighed the same",
        "return float(weights @ self._powers(points, centers).min(axis=1))",
        "return float(self._powers(points, centers).min(axis=1).sum())",
        _BEST,
    ),
    Mutant(
        12,
        _SOLVER,
        "medians are means",
        "_averages(points, weights / np.maximum(distance, shortest), label, centers)",
        "_averages(points, weights, label, centers)",
        _BEST,
    ),
    Mutant(
        12,
        _SOLVER,
        "centers are drawn as if all points weighed the same",
        "chance = weights * least if (weights * least).sum() > 0 else weights",
        "chance = least if least.sum() > 0 else weights",
        _BEST,
    ),
    Mutant(
        12,
        _SOLVER,
        "the worst of the drawn centers is taken",
        "winner = int(np.argmin(weights @ left))",
        "winner = int(np.argmax(weights @ left))",
        _BEST,
    ),
    Mutant(
        12,
        _SOLVER,
        "starts for medians are drawn and compared by squared distances",
        "return squares if self.power == 2 else np.sqrt(squares)",
        "return squares",
        _BEST,
    ),
)

RECORDS = (
    Mutant(
        11,
        "transforms/unit_groups.py",
        "of groups of one hash that which arrives first is kept",
        "ranked = sorted_within(unit_of, hashes, (names.ranks[group_of],))",
        "ranked = sorted_within(unit_of, hashes, (group_of,))",
        Selection(("tests/transforms/test_unit_groups.py",)),
    ),
    Mutant(
        12,
        "transforms/unit_records.py",
        "numbers of rows of a wide domain are rounded as floats",
        "grid.quantize(counts if grid.wide else counts.astype(np.float64))",
        "grid.quantize(counts.astype(np.float64))",
        Selection(("tests/transforms/test_unit_records.py",), only="exact_on_a_wide_grid"),
    ),
)

ANSWERS = (
    Mutant(
        12,
        "transforms/function_messages.py",
        "of an answer in several pieces the first one is the answer",
        "            answer += part\n",
        "            return part\n",
        _MESSAGES,
    ),
    Mutant(
        12,
        "transforms/function_messages.py",
        "an answer may take the whole time for each of its pieces",
        "            asked.settimeout(max(1e-3, deadline - time.monotonic()))\n            part",
        "            part",
        _MESSAGES,
    ),
)
