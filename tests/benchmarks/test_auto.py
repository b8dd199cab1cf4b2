"""Regret: the error of one method over that of another, and the least of any rule by public parameters."""

import itertools

import numpy as np
import pytest

from tests.benchmarks.auto import least_regret
from tests.measured.cases import Case, line
from tests.measured.trials import Runs, Trial


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.5, 0.75, 0.95, 1.0])
def test_no_rule_has_less_regret_and_one_has_as_little(seed, share):
    rng = np.random.default_rng(seed)
    methods = ("first", "second", "third")
    settings = [
        [{method: float(rng.integers(1, 12)) for method in methods} for _ in range(rng.integers(1, 5))]
        for _ in range(4)
    ]
    of_rules = []
    for rule in itertools.product(methods, repeat=len(settings)):
        taken = [case[method] for cases, method in zip(settings, rule, strict=True) for case in cases]
        of_rules.append(np.quantile(taken, share, method="inverted_cdf"))
    assert least_regret(settings, share) == min(of_rules)


def test_regret_is_not_chance_where_about_half_of_the_answers_are_exact():
    """Released values that are clipped to the truth are such. A median says 1 or 100, by chance."""
    rng, errors, medians = np.random.default_rng(0), [], []
    case = Case("mst_cost", line(100), {}, 1.0, "add_or_remove_one", "uniform", 100)
    for name in "abcdefgh":
        trials = tuple(Trial(float(error), {}) for error in rng.choice([1, 100], 301))
        errors.append(Runs(case, name, {}, 0.1, trials).error)
        medians.append(np.median([trial.error for trial in trials]))
    assert max(errors) <= 1.5 * min(errors)
    assert max(medians) == 100 * min(medians)
