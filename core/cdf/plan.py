"""Plan of the cdf task: method, split of the budget, promises; from public parameters alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from core.budget import Budget, Mechanism, calibrate, spend
from core.cdf.cumulative import OrderedMechanism, Range, Reading
from core.cdf.hierarchical import Forest, OrderedHierarchical
from core.domain import Grid
from core.draws import Laplace, charged
from core.mechanisms.tails import largest_of, largest_sum, variance
from core.neighbors import Neighbors
from core.plan import Plan, check_failure
from core.policy import Partition

Method = Literal["auto", "ordered", "hierarchical"]

_LARGEST = 1 << 22  # most grid points: each gets a row, and noise


@dataclass(frozen=True)
class Cdf:
    """How many records have at most each value of a column: its distribution, learned in Kolmogorov distance.

    Args:
        failure: probability with which a promise may fail, beta.
        method: `ordered`, `hierarchical` (both use the distance of the policy), or `auto`.
        ranges: pairs of lowest and highest value, data units; the records in each are counted.
        fanout: most children of a node of the tree.

    Raises:
        ValueError: one sentence that names the field, its value and what is allowed.
    """

    failure: float = 0.1
    method: Method = "auto"
    ranges: tuple[tuple[float, float], ...] = ()
    fanout: int = 16

    def __post_init__(self) -> None:
        check_failure(self.failure)
        if self.method not in get_args(Method):
            raise ValueError(f"params.method is {self.method!r}: it must be auto, ordered or hierarchical.")
        for pair in self.ranges:
            if len(pair) != 2 or not all(map(math.isfinite, pair)) or pair[0] > pair[1]:
                raise ValueError(
                    f"params.ranges has {list(pair)}: a range is two finite numbers, the lower one first."
                )
        if not 2 <= self.fanout <= 1024:
            raise ValueError(f"params.fanout is {self.fanout}: it must be from 2 to 1024.")


def split(s_nodes: float, h_nodes: float, height: int) -> float:
    """Return the share of epsilon for the S nodes under which a range's expected squared error is least.

    c_1 / epsilon_S^2 + c_2 / epsilon_H^2 with c_1 = 2 s_nodes and c_2 = 8 h^2 h_nodes is least where
    epsilon_S : epsilon_H = c_1^(1/3) : c_2^(1/3) (He, Machanavajjhala and Ding 2014, Section 7.2).

    Args:
        s_nodes: average number of S nodes in a range's count.
        h_nodes: average number of H nodes.
        height: levels h of H nodes.
    """
    s, h = (2 * s_nodes) ** (1 / 3), (8 * height**2 * h_nodes) ** (1 / 3)
    return float(s / (s + h))


@dataclass(frozen=True)
class _Setting:
    """Everything a plan is made from."""

    grid: Grid
    params: Cdf
    budget: Budget
    neighbors: Neighbors

    @property
    def size(self) -> int:
        return self.grid.extents[0] + 1

    @property
    def replaced(self) -> bool:
        return self.neighbors.name == "replace_one"

    @property
    def theta(self) -> int:
        """Largest distance of a secret pair, or the whole domain."""
        return self.neighbors.secrets.reach(self.grid.extents) if self.replaced else self.size

    def ranges(self) -> list[tuple[float, float, int, int]]:
        """Each range with the number of grid points below it and up to its end."""
        origin, step = self.grid.lower[0], self.grid.step
        found = []
        for low, high in self.params.ranges:
            start = math.ceil(min(max((low - origin) / step, 0), self.size) - 1e-9)
            stop = math.floor(max(min((high - origin) / step, self.size - 1), -1) + 1e-9) + 1
            found.append((low, high, start, max(start, stop)))
        return found

    def ordered(self) -> Plan:
        changed = self.neighbors.cumulative(self.size).l1
        count = Laplace.of("cumulative counts", self.budget.epsilon, changed)
        each = variance(count.scale)

        def noise(start: int, stop: int) -> float:
            return each * ((0 < start < self.size) + (0 < stop < self.size)) if start < stop else 0.0

        errors = [largest_of(self.size - 1, count.scale, failure) for failure in self.failures]
        reading = self.reading([noise(start, stop) for _, _, start, stop in self.ranges()], errors)
        average = each * 2 * (self.size - 1) / (self.size + 1)  # 2 of size + 1 prefixes are exact
        return self._plan("ordered", OrderedMechanism(self.size, count, reading), reading, average)

    def hierarchical(self) -> Plan:
        forest, exact = self.forest()
        s_nodes, h_nodes = forest.average_noise()
        share = 0.0 if exact or forest.blocks == 1 else split(s_nodes, h_nodes, forest.height)
        touched = forest.height * self.neighbors.moves

        def draws(multiplier: float) -> tuple[Laplace, Laplace]:
            spent = multiplier * self.budget.epsilon
            s = Laplace(what="counts before blocks", scale=0.0, sensitivity=0.0)
            h = Laplace(what="tree nodes", scale=0.0, sensitivity=0.0)
            if share > 0:
                s = Laplace.of(s.what, share * spent, 1)
            if share < 1:
                h = Laplace.of(h.what, (1 - share) * spent, touched)
            return s, h

        def mechanisms(multiplier: float) -> tuple[Mechanism, ...]:
            return tuple(m for draw in draws(multiplier) for m in draw.mechanisms("cdf"))

        s, h = draws(calibrate(self.budget, mechanisms))
        variances = variance(s.scale), variance(h.scale)
        ends = np.array([[start, stop] for _, _, start, stop in self.ranges()], dtype=np.int64).reshape(-1, 2)
        s_between, h_between = forest.noise_between(ends[:, 0], ends[:, 1])
        noise = variances[0] * s_between + variances[1] * h_between
        prefixes, largest = forest.prefix_variances(*variances), max(s.scale, h.scale)
        errors = [largest_sum(prefixes, largest, failure) for failure in self.failures]
        reading = self.reading(noise.tolist(), errors)
        average = variances[0] * s_nodes + variances[1] * h_nodes
        return self._plan("hierarchical", OrderedHierarchical(forest, s, h, reading), reading, average)

    def forest(self) -> tuple[Forest, bool]:
        """Return the blocks and trees, and whether no secret pair lies in two blocks."""
        secrets, fanout = self.neighbors.secrets, self.params.fanout
        if isinstance(secrets, Partition) and secrets.widths[0] < self.size:
            return Forest(self.size, secrets.widths[0], fanout, rooted=True), True
        whole = self.theta >= self.size - 1
        return Forest(self.size, self.size if whole else self.theta, fanout, rooted=self.replaced), False

    @property
    def failures(self) -> tuple[float, float]:
        return self.params.failure, self.params.failure / 2

    def reading(self, noise: Sequence[float], errors: Sequence[float]) -> Reading:
        """Return what is read off the release; rounding to whole records adds at most half a record."""
        asked = zip(self.ranges(), noise, strict=True)
        whole, half = (math.floor(error + 0.5) for error in errors)
        return Reading(
            ranges=tuple(Range(*query, math.sqrt(each)) for query, each in asked),
            failure=self.params.failure,
            error=whole,
            half_error=half,
            total_public=self.replaced,
        )

    def _plan(
        self,
        method: str,
        round_: OrderedMechanism | OrderedHierarchical,
        reading: Reading,
        average: float,
    ) -> Plan:
        promises: Mapping[str, Any] = {
            "kolmogorov_records": reading.error,
            "range_error": 2 * reading.error,
            "range_standard_error": math.sqrt(average),
        }
        mechanisms = charged((round_,))
        distance = "n" if self.replaced else "n, or twice that as the total is noisy too,"
        return Plan(
            method=method,
            rounds=(round_,),
            start=None,
            mechanisms=mechanisms,
            spend=spend(mechanisms, self.budget.delta),
            promises=promises,
            failure=self.params.failure,
            notes=(
                f"The distribution is learned to a Kolmogorov distance of {reading.error:,} / {distance} "
                "from that of the data.",
            ),
        )


def plan_cdf(grid: Grid, params: Cdf, budget: Budget, neighbors: Neighbors, salt: bytes) -> Plan:
    """Plan the cdf; `auto` is the method with the smallest promised Kolmogorov distance.

    Without a policy this is differential privacy by a tree over the whole domain; a distance policy
    needs far less noise, a partition none between its parts. Where theta is nearly the domain, one tree
    over the whole of it promises more (`hierarchical_whole` among the alternatives).

    Args:
        grid: the universe, one axis.
        params: method, ranges and fan-out.
        budget: what the run may spend.
        neighbors: the relation, with its policy.
        salt: not used.

    Returns:
        One round and promises: `kolmogorov_records` (every cumulative count is off by at most that: the
        Kolmogorov distance to the data times the number of records), `range_error` (and every range by
        that), `range_standard_error` (root mean squared error of a random range before inference).

    Raises:
        ValueError: more than one column, too many grid points, or a relation that the method doesn't
            support; one sentence.
    """
    if grid.dimension != 1:
        raise ValueError(f"input.columns has {grid.dimension} columns: cdf takes one.")
    if grid.extents[0] >= _LARGEST:
        raise ValueError(
            f"domain has {grid.extents[0] + 1:,} grid points: cdf takes at most {_LARGEST:,}; use a larger "
            "domain.step."
        )
    if grid.wide and any(abs(end) >= 2**53 for pair in params.ranges for end in pair):
        raise ValueError(
            f"params.ranges is {[list(pair) for pair in params.ranges]}: its ends must be below 2^53, from "
            "where on they are rounded."
        )
    if neighbors.policy is not None:
        neighbors.policy.check(grid.extents)
    if neighbors.constraints:
        raise ValueError("privacy.policy.constraints is set: cdf does not support them; histogram does.")
    setting = _Setting(grid, params, budget, neighbors)
    if not setting.replaced and params.method == "ordered":
        raise ValueError(
            "params.method is ordered: a record more changes every cumulative count, so it needs neighbors "
            "replace_one and a distance policy."
        )
    plans: dict[str, Plan] = {"hierarchical": setting.hierarchical()}
    if setting.replaced:
        plans["ordered"] = setting.ordered()
        if neighbors.policy is not None:  # what hides every pair hides the policy's
            whole = replace(setting, neighbors=Neighbors("replace_one"))
            plans["hierarchical_whole"] = whole.hierarchical()
    best = min(plans, key=lambda name: plans[name].promises["kolmogorov_records"])
    method = best if params.method == "auto" else params.method
    chosen = plans.pop(method)
    return replace(chosen, alternatives={name: dict(plan.promises) for name, plan in plans.items()})
