"""Plan of the histogram task: method, noise scales, promises; from public parameters alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from core.budget import Budget, spend
from core.domain import Grid
from core.draws import Laplace, charged
from core.histogram.constraints import Consistency, check_satisfiable, constrained_sensitivity
from core.histogram.counts import Cells, DenseHistogram, SparseHistogram, shape_of
from core.mechanisms.stability import StabilityHistogram
from core.mechanisms.tails import largest_of, variance
from core.neighbors import Neighbors
from core.plan import Plan, check_failure

Method = Literal["auto", "dense", "sparse"]

_DENSE = 1 << 22  # most cells that are all given noise


@dataclass(frozen=True)
class Histogram:
    """How many records lie in each cell of a grid of equal cells.

    Args:
        cells: cells per column: one number, or one for each.
        failure: probability with which a promise may fail, beta.
        method: `dense` (every cell), `sparse` (cells with enough records, needs delta), or `auto`.
        floor: sparse only: cells with at most so many records never appear, which saves memory.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    cells: int | tuple[int, ...]
    failure: float = 0.1
    method: Method = "auto"
    floor: int = 0

    def __post_init__(self) -> None:
        numbers = (self.cells,) if isinstance(self.cells, int) else self.cells
        if not numbers or min(numbers) < 1:
            raise ValueError(f"params.cells is {self.cells}: every number must be a whole number above 0.")
        check_failure(self.failure)
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto, dense or sparse.")
        if self.floor < 0 or (self.floor and self.method != "sparse"):
            raise ValueError(
                f"params.floor is {self.floor}: it must be at least 0, and 0 unless params.method is sparse."
            )


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    cells: Cells
    params: Histogram
    budget: Budget
    neighbors: Neighbors

    @cached_property
    def sensitivity(self) -> float:
        """L1 sensitivity of the counts."""
        if self.neighbors.policy is not None and self.neighbors.constraints:
            return constrained_sensitivity(self.neighbors.policy, self.cells.cuts, self.cells.grid.extents)
        if self.neighbors.policy is None and self.cells.number > 1:  # any two cells: no need to list them
            return self.neighbors.histogram().l1
        return self.neighbors.histogram(self.cells.cuts).l1

    @property
    def scale(self) -> float:
        return self.sensitivity / self.budget.epsilon

    @property
    def error(self) -> int:
        """Bound on the noise of every cell at once."""
        return largest_of(self.cells.number, self.scale, self.params.failure)

    @property
    def consistency(self) -> Consistency | None:
        known = self.neighbors.constraints
        return Consistency.of(known, self.cells.cuts, self.cells.grid.extents) if known else None

    def refusal(self, method: str) -> str | None:
        """Why `method` cannot be used, or None."""
        if method == "dense":
            if self.cells.number > _DENSE:
                return f"params.cells makes {self.cells.number:,} cells: dense takes at most {_DENSE:,}."
            return None
        if self.neighbors.constraints:
            return "params.method is sparse: it does not support privacy.policy.constraints; use dense."
        if self.sensitivity and not 0 < self.budget.delta < 0.5:
            return f"privacy.delta is {self.budget.delta}: sparse needs one above 0 and below 1/2."
        return None

    def dense(self) -> Plan:
        consistency = self.consistency
        promises: dict[str, Any] = {
            "cell_error": self.error,
            "standard_error": math.sqrt(variance(self.scale)),
        }
        if consistency is not None:
            promises["cell_error"] = 2 * self.error + 1 if consistency.disjoint else None
        count = Laplace(what="cell counts", scale=self.scale, sensitivity=self.sensitivity)
        return self._plan("dense", DenseHistogram(self.cells, count, consistency), promises)

    def sparse(self) -> Plan:
        epsilon, delta = self.budget.epsilon, self.budget.delta
        floor = self.params.floor
        what = "cell counts"
        if self.sensitivity:
            count = StabilityHistogram.of(what, epsilon, delta, self.neighbors)
        else:
            count = StabilityHistogram(what=what, scale=0.0, threshold=1, moves=0)
        promises = {
            "cell_error": self.error,
            "released_from": floor + count.threshold + self.error,
            "standard_error": math.sqrt(variance(self.scale)),
        }
        return self._plan("sparse", SparseHistogram(self.cells, count, floor), promises)

    def _plan(
        self,
        method: str,
        round_: DenseHistogram | SparseHistogram,
        promises: Mapping[str, Any],
    ) -> Plan:
        mechanisms = charged((round_,))
        return Plan(
            method=method,
            rounds=(round_,),
            start=None,
            mechanisms=mechanisms,
            spend=spend(mechanisms, self.budget.delta),
            promises=promises,
            failure=self.params.failure,
        )

    def notes(self, method: str) -> tuple[str, ...]:
        notes = []
        if not self.sensitivity:
            notes.append(
                "No secret pair of the policy lies in two cells: the counts are exact and cost nothing."
            )
        if method == "sparse":
            notes.append(
                "A cell with fewer records than promised may be missing; the private stage holds every cell "
                f"with more than {self.params.floor} records."
            )
        policy = self.neighbors.policy
        if policy is not None and policy.constraints:
            which = (
                "any minimal set of changes that keeps the known counts and holds a secret pair"
                if policy.semantics == "literal"
                else "minimal sets of changes that keep the known counts and are secret pairs, each of them"
            )
            notes.append(
                f"Neighbors under the {len(policy.constraints)} known counts differ by {which}; "
                f"the counts then change by at most {self.sensitivity:.0f} in all. The known counts are "
                "taken as true."
            )
            kept = self.consistency
            if kept is not None and len(kept.answers) < len(policy.constraints):
                notes.append(
                    "Known counts of boxes that are not made of whole cells cost noise, but are not kept."
                )
        return tuple(notes)


def plan_histogram(grid: Grid, params: Histogram, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the histogram; `auto` is dense where the cells allow it, as then none is missing.

    Args:
        grid: the universe.
        params: cells and method.
        budget: what the run may spend.
        neighbors: the relation, with its policy; the number of records is never promised on.
        salt: not used.

    Returns:
        One round and promises: `cell_error` (every released count is off by at most that; None where
        overlapping known counts are kept), `released_from` (sparse: every cell with at least so many records
        appears), `standard_error` of a count before known counts are kept.

    Raises:
        ValueError: cells, policy or budget don't fit the method; one sentence.
    """
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
        check_satisfiable(neighbors.constraints, grid.extents)
    setting = _Setting(Cells(grid, shape_of(params.cells, grid)), params, budget, neighbors)
    refused = {method: setting.refusal(method) for method in ("dense", "sparse")}
    method = params.method
    if method == "auto":
        method = "sparse" if refused["dense"] and not refused["sparse"] else "dense"
    reason = refused[method]
    if reason is not None:
        raise ValueError(reason)
    plans = {
        name: setting.dense() if name == "dense" else setting.sparse()
        for name, why in refused.items()
        if why is None
    }
    chosen = plans.pop(method)
    return replace(
        chosen,
        alternatives={name: dict(plan.promises) for name, plan in plans.items()},
        notes=setting.notes(method),
    )
