"""Plan Lloyd's iteration on noisy sums, under every relation and Blowfish policy without constraints."""

import math

from core.budget import Budget, Mechanism, calibrate, gaussian, spend
from core.clustering.lloyd import Iteration, scattered
from core.clustering.params import KMeans
from core.clustering.parts import PartAverage, PartCounts, Parts
from core.clustering.solver import Solver
from core.clustering.space import Space
from core.domain import Grid
from core.neighbors import Neighbors
from core.plan import Plan
from core.policy import Partition
from core.rounds import Round

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

    def mechanisms(rho: float) -> tuple[Mechanism, ...]:
        each = rho / len(names)
        draws = []
        for name in names:
            draws += [
                gaussian(name, "sums, per unit of their sensitivity", (1 - _COUNT - _SPREAD) * each, 1),
                gaussian(name, "shares, per unit of their sensitivity", _COUNT * each, 1),
                gaussian(name, "spread", _SPREAD * each, 1),
            ]
        return tuple(draws)

    draws = mechanisms(calibrate(budget, mechanisms))
    sums, shares, spread = (draws[i].scale for i in range(3))
    changed = 1.0 if neighbors.name == "add_or_remove_one" else math.sqrt(2)
    error = shares * changed * math.sqrt(2 * math.log(2 * params.k / params.failure))
    rounds = [Iteration(space, neighbors, sums, shares, spread, name) for name in names]
    return _plan(
        tuple(rounds), scattered(space, params.k), draws, budget, params, math.ceil(error) + params.k
    )


def _plan_parts(parts: Parts, params: KMeans, budget: Budget) -> Plan:
    names = [f"average_{i + 1}" for i in range(params.iterations or 1)]

    def mechanisms(rho: float) -> tuple[Mechanism, ...]:
        return tuple(gaussian(name, "sums", rho / len(names), max(1.0, parts.diameter)) for name in names)

    draws = mechanisms(calibrate(budget, mechanisms))
    start = scattered(parts.space, params.k)
    first = PartCounts(parts, _SOLVER, params.k, start)
    averages = [PartAverage(parts, params.k, draw.scale, draw.round) for draw in draws]
    note = "Under this policy the number of records in each part is no secret: it is used as it is."
    return _plan((first, *averages), None, draws, budget, params, 0, note)


def _plan(
    rounds: tuple[Round, ...],
    start: object,
    draws: tuple[Mechanism, ...],
    budget: Budget,
    params: KMeans,
    count_error: int,
    *notes: str,
) -> Plan:
    return Plan(
        method="lloyd",
        rounds=rounds,
        start=start,
        mechanisms=draws,
        spend=spend(draws, budget.delta),
        promises={"count_error": count_error},
        failure=params.failure,
        notes=notes,
    )
