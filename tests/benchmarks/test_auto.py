"""The least regret of a rule by public parameters is that of the best of all rules."""

import itertools

import numpy as np
import pytest

from tests.benchmarks.auto import least_regret


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
