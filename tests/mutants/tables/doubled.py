"""Wrong versions with more noise than neighbors need: private, charged, and half as accurate."""

from tests.mutants.mutant import Mutant
from tests.mutants.tables.selections import needed

_COUNTED = "core/centers/coreset.py"
_TOTALS = "core/statistics/methods.py"

NOISE = (
    Mutant(
        12,
        _COUNTED,
        "counts of centers change twice as much as they can",
        'noise = Gaussian.of("counts", share * self._shares["count"], cells)',
        'noise = Gaussian.of("counts", share * self._shares["count"], 2 * cells)',
        needed("k_means"),
    ),
    Mutant(
        12,
        _TOTALS,
        "totals with Laplace noise change twice as much as they can",
        "return Laplace.of(quantity.what, share * self.setting.budget.epsilon, l1, **more)",
        "return Laplace.of(quantity.what, share * self.setting.budget.epsilon, 2 * l1, **more)",
        needed("statistics"),
    ),
    Mutant(
        12,
        _TOTALS,
        "totals with Gaussian noise change twice as much as they can",
        "return Gaussian.of(quantity.what, share * self._rho, l2, **more)",
        "return Gaussian.of(quantity.what, share * self._rho, 2 * l2, **more)",
        needed("statistics"),
    ),
    Mutant(
        12,
        "core/statistics/ranks.py",
        "ranks of groups change twice as much as they can",
        "budget = Budget(epsilon / moved, 0.0)",
        "moved *= 2\n        budget = Budget(epsilon / moved, 0.0)",
        needed("statistics"),
    ),
    Mutant(
        12,
        "core/ranges/methods.py",
        "boxes of a grid change twice as much as they can",
        "Laplace.of(what, part * epsilon, change) for what",
        "Laplace.of(what, part * epsilon, 2 * change) for what",
        needed("ranges"),
    ),
    Mutant(
        12,
        "core/graphs/global_cost.py",
        "a replaced edge changes the cost twice",
        "self.setting.budget.epsilon, self.setting.grid.extents[2])",
        "self.setting.budget.epsilon, self.changes * self.setting.grid.extents[2])",
        needed("mst_cost"),
    ),
    Mutant(
        12,
        "core/cdf/ordered.py",
        "cumulative counts change twice as much as they can",
        "share * self.setting.budget.epsilon, self._sensitivity)",
        "share * self.setting.budget.epsilon, 2 * self._sensitivity)",
        needed("cdf"),
    ),
)
