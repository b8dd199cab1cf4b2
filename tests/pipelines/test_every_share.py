"""A part of the budget buys what a budget as large as the part buys.

Methods are planned with nearly all of a budget of pure draws. So what a plan shows could not tell a promise
that is made for the whole budget from one for the share that its rounds have.
"""

import pytest

from core.budget import Budget
from core.neighbors import Neighbors
from core.task import Setting
from pipelines.tasks import TASKS
from tests.measured.cases import SALT, settings

ALIKE = {
    "cdf": {"ordered", "hierarchical"},
    "interior_point": {"exponential"},
    "median": {"exponential"},
    "minimum": {"exponential"},
    "quantiles": {"recursive"},
    "ranges": {"grid", "tree"},
    "statistics": {"laplace"},
    "threshold": {"exponential", "interior_point"},
}
"""Methods whose rounds have epsilon alone from a share, at least."""


@pytest.mark.parametrize("relation", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("task", ALIKE)
def test_equal_rounds_have_equal_promises(task: str, relation: str) -> None:
    compared, core, neighbors = set(), TASKS[task].core, Neighbors(relation)
    for params in {repr(cases[0].params): cases[0].params for cases in settings(task)}.values():
        grid = settings(task)[0][0].grid
        for kind in core.methods:
            one, two = (
                kind(Setting(grid, core.params(**params), Budget(epsilon, 1e-6), neighbors, SALT))
                for epsilon in (0.5, 1.0)
            )
            if one.refusal() is None and two.refusal() is None and one.rounds(1.0) == two.rounds(0.5):
                assert one.accuracy(1.0) == two.accuracy(0.5)
                compared.add(kind.name)
    missing = {"ordered"} if relation == "add_or_remove_one" else set()
    assert compared >= ALIKE[task] - missing
