"""Wrong versions of bounds."""

from tests.mutants.mutant import Mutant, Selection
from tests.mutants.tables.selections import charged, nothing_but_noise, spent

_ROUND = "core/bounds/by_rank.py"
_TESTS = ("tests/core/bounds/test_bounds.py",)
_WORST = Selection(_TESTS, "worst_rows or outside")
_EXACT = Selection(_TESTS, "but_for_the_failure")
_COUNTED = Selection(_TESTS, "counted_once or moved_apart")

ROUNDS = (
    Mutant(
        8,
        _ROUND,
        "upper bounds are not charged",
        "for ends in self.ends for end in ends)",
        "for ends in self.ends for end in ends[:1])",
        charged("bounds"),
    ),
    Mutant(
        7,
        _ROUND,
        "a replaced record is one change",
        "per_weight(what, self._epsilon(share), self.setting.neighbors)",
        'per_weight(what, self._epsilon(share), replace(self.setting.neighbors, name="add_or_remove_one"))',
        spent("bounds", "uniform"),
    ),
    Mutant(
        1,
        _ROUND,
        "a lower bound is where most records are",
        "found.append([numbers[at] for at in _apart(low, high, len(numbers))])",
        "found.append([numbers[at] for at in _apart(int(cells.argmax()) // 2, high, len(numbers))])",
        nothing_but_noise("bounds"),
    ),
    Mutant(
        12,
        _ROUND,
        "a lower bound stands for the values below it",
        "below, above = np.append(cells, 0), np.append(0, cells)",
        "above, below = np.append(cells, 0), np.append(0, cells)",
        _WORST,
    ),
    Mutant(
        12,
        _ROUND,
        "a round number itself counts as the values above it",
        'np.searchsorted(numbers, points, side="right") - 1',
        "np.searchsorted(numbers, points) + (points > 0)",
        _COUNTED,
    ),
    Mutant(
        12,
        _ROUND,
        "bounds are sought at the ends, where all points beyond have one rank",
        "inside, side = math.floor(self._bound(share, column)) + 1, self._lower",
        "inside, side = 1, self._lower",
        _WORST,
    ),
    Mutant(
        12,
        _ROUND,
        "the promise is for one side",
        "Promises(2 * (2 * worst + 1))",
        "Promises(2 * worst + 1)",
        _WORST,
    ),
    Mutant(
        12,
        _ROUND,
        "the failure of each bound is that of all",
        "failure = self.setting.params.failure / draws",
        "failure = self.setting.params.failure * draws",
        _EXACT,
    ),
    Mutant(
        12,
        _ROUND,
        "a replaced record is one change for the promise",
        "scale = self.setting.neighbors.changes / self._epsilon(share)",
        "scale = 1 / self._epsilon(share)",
        _EXACT,
    ),
    Mutant(
        12,
        _ROUND,
        "half as many rows are said to suffice",
        "enough = math.ceil(2 * (worst + 1)",
        "enough = math.ceil((worst + 1)",
        _EXACT,
    ),
    Mutant(
        12,
        _ROUND,
        "equal bounds remain so",
        "if low < high:",
        "if low <= high:",
        _COUNTED,
    ),
)
