"""Plan Lloyd's iteration on noisy sums, under every relation and Blowfish policy without constraints."""

import math

from core.budget import Budget, calibrate, spend
from core.centers.lloyd import Iteration, scattered
from core.centers.params import KMeans
from core.centers.parts import PartAverage, PartCounts, Parts
from core.centers.solver import Solver
from core.centers.space import Space
from core.domain import Grid
from core.draws import Charged, Gaussian, charged
from core.mechanisms.stability import StabilityHistogram
from core.neighbors import Neighbors
from core.plan import Plan
from core.policy import Partition

_ITERATIONS = 6
_COUNT, _SPREAD = 0.15, 0.05  # parts of an iteration
_SOLVER = Solver(2, starts=4, iterations=50)  # there may be as many parts as records


def plan_lloyd(grid: Grid, params: KMeans, budget: Budget, neighbors: Neighbors) -> Plan:
    """Plan k-means by noisy iterations (SuLQ; Blum, Dwork, McSherry and Nissim 2005).

    Args:
        grid: the universe.
        params: what to look for; `iterations` is 6 by default, or 1 under a partition policy.
        budget: what the run may spend.
        neighbors: the relation; a policy's distances and parts make the noise smaller.

    Returns:
        Rounds and promises: `count_error` (each count is off by at most so much with hard assignments).

    Raises:
        ValueError: delta is 0, shares are given, the domain is too wide in steps, or the policy has
            constraints.
    """
    if budget.delta <= 0:
        raise ValueError("privacy.delta is 0: this method adds Gaussian noise, which needs a delta above 0.")
    if params.shares:
        raise ValueError("params.shares is set: the iterations of lloyd share the budget evenly.")
    neighbors.count()  # refuses constraints
    space = Space(grid)
    if isinstance(neighbors.secrets, Partition):
        parts = Parts(space, neighbors.secrets)
        if parts.can_be_numbered:
            return _plan_parts(parts, params, budget)
    names = [f"iteration_{i + 1}" for i in range(params.iterations or _ITERATIONS)]

    def iterations(rho: float) -> tuple[Iteration, ...]:
        each = rho / len(names)
        sums = Gaussian.of("sums, per unit of their sensitivity", (1 - _COUNT - _SPREAD) * each, 1)
        shares = Gaussian.of("shares, per unit of their sensitivity", _COUNT * each, 1)
        spread = Gaussian.of("spread", _SPREAD * each, 1)
        return tuple(Iteration(space, neighbors, sums, shares, spread, name) for name in names)

    rounds = iterations(calibrate(budget, lambda rho: charged(iterations(rho))))
    changed = 1.0 if neighbors.name == "add_or_remove_one" else math.sqrt(2)
    error = rounds[0].shares.scale * changed * math.sqrt(2 * math.log(2 * params.k / params.failure))
    return _plan(rounds, scattered(space, params.k), budget, params, math.ceil(error) + params.k)


def _plan_parts(parts: Parts, params: KMeans, budget: Budget) -> Plan:
    names = [f"average_{i + 1}" for i in range(params.iterations or 1)]

    def averages(rho: float) -> tuple[PartAverage, ...]:
        sums = Gaussian.of("sums", rho / len(names), max(1.0, parts.diameter))
        counts = Gaussian(what="counts", scale=0.0, sensitivity=0.0)
        return tuple(PartAverage(parts, params.k, sums, counts, name) for name in names)

    rho = calibrate(budget, lambda rho: charged(averages(rho)))
    counts = StabilityHistogram(what="counts of parts", scale=0.0, threshold=1, moves=0)
    first = PartCounts(parts, _SOLVER, params.k, scattered(parts.space, params.k), counts)
    note = "Under this policy the number of records in each part is no secret: it is used as it is."
    return _plan((first, *averages(rho)), None, budget, params, 0, note)


def _plan(
    rounds: tuple[Charged, ...], start: object, budget: Budget, params: KMeans, count_error: int, *notes: str
) -> Plan:
    mechanisms = charged(rounds)
    return Plan(
        method="lloyd",
        rounds=rounds,
        start=start,
        mechanisms=mechanisms,
        spend=spend(mechanisms, budget.delta),
        promises={"count_error": count_error},
        failure=params.failure,
        notes=notes,
    )
