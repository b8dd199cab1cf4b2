"""The ordered hierarchical mechanism: noisy counts up to each block's end, and a noisy tree in each block."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.aggregate import Counts
from core.budget import Mechanism
from core.cdf.forest import Forest
from core.cdf.found import Cumulative, Reading, count_values, cumulate, monotone
from core.cdf.largest_errors import PILOTS, TRIALS, LargestErrors, made_up, simulated
from core.cdf.params import Cdf
from core.cdf.reading import promised, range_ends, read
from core.draws import Charged, Draw, Laplace
from core.errors import InvalidValue
from core.mechanisms.tails import largest_sum, variance
from core.noise import Noise
from core.policy import Partition
from core.rounds import Block
from core.task import Accuracy, Method, Setting
from core.tightness import Tightness

_MOST_SIMULATED = 1 << 16  # values for which noise is simulated
_SIMULATED = 25_000_000  # values in all simulations together, at most: some three seconds
_TIGHTNESS = Tightness(
    "The errors promised for counts and ranges are nearly reached where every value of the domain has many "
    "more rows than the noise scale. Where values have few rows or none, their counts are fitted together, "
    "and errors are smaller.",
    reached=True,
)
_NOT_SIMULATED = Tightness(
    "Errors are usually smaller than promised for counts and ranges by a third or more. In a domain of more "
    f"than {_MOST_SIMULATED:,} values the promise adds up the failures of all counts as if their noise had "
    "nothing in common, and a range gets twice the error of a count. Where values have few rows or none, "
    "counts are fitted together, and errors are smaller still.",
    reached=False,
)


@dataclass(frozen=True)
class OrderedHierarchical:
    """Release the cumulative histogram from noisy S nodes and noisy H nodes.

    Sensitivity, where h is the number of levels of H nodes:

    1. The values of a secret pair are at most theta apart, and a block is at least theta wide. So a secret
       pair changes at most one S node, by 1: the S nodes have L1 sensitivity 1.
    2. Each of the two values changes one H node of each level by 1: the H nodes have L1 sensitivity 2 h.
    3. Noise of scales 1 / epsilon_S and 2 h / epsilon_H is (epsilon_S + epsilon_H)-private.
    4. If no secret pair lies in two blocks, no secret pair changes an S node. Then the S nodes are exact, and
       so are the released counts before each block.

    The published mechanism (He, Machanavajjhala and Ding 2014, Section 7.2) treats the count before the
    second block as a node of the first tree, with noise of scale 2 h / epsilon on that tree. This would cost
    more than epsilon. Here that count is an S node like all others.

    With one block this is the hierarchical mechanism (Hay, Rastogi, Miklau and Suciu 2010), which hides every
    pair. If records are added or removed, the H nodes have L1 sensitivity h, and the total is not public.

    Args:
        forest: the nodes.
        s: noise of the S nodes.
        h: noise of the H nodes of all levels.
        reading: what is computed from the release.
    """

    forest: Forest
    s: Laplace
    h: Laplace
    reading: Reading
    purpose: ClassVar[str] = "how many rows have at most each value"
    dense: ClassVar[bool] = True
    floor: int = 0
    name: str = "cdf"

    @property
    def most_counts(self) -> int:
        """See `core.held`."""
        return self.forest.size

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`: one block has no S nodes, and blocks of one value have no H nodes."""
        return ((self.s,) if self.forest.blocks > 1 else ()) + ((self.h,) if self.forest.height else ())

    @property
    def weight(self) -> float:
        """Variance of an S node over that of an H node."""
        return variance(self.s.scale) / variance(self.h.scale) if self.forest.height else 1.0

    def summarize(self, block: Block, state: None) -> Counts:
        """Count the block's records by value."""
        return count_values(block)

    def release(self, aggregate: Counts, state: None, noise: Noise) -> Cumulative:
        """Release ascending counts, inferred from all noisy nodes."""
        forest = self.forest
        exact = cumulate(aggregate, forest.size)
        ends = exact[forest.ends() - 1]
        if forest.blocks > 1:
            ends = self.s.add(ends, noise)
        nodes = forest.levels(np.diff(exact, prepend=0))
        if forest.height:
            present = forest.present()
            exact_nodes = [level[here] for level, here in zip(nodes, present, strict=True)]
            noisy = self.h.add(np.concatenate(exact_nodes), noise)
            parts = np.split(noisy, np.cumsum([len(part) for part in exact_nodes[:-1]]))
            for level, here, part in zip(nodes, present, parts, strict=True):
                level[here] = part
        total = int(exact[-1]) if forest.rooted else None
        estimates = forest.infer(nodes, ends, self.weight, total)
        exact_ends = forest.blocks > 1 and self.s.scale == 0
        if exact_ends and total is not None:
            estimates = forest.between(estimates, ends, total)
        return Cumulative(monotone(estimates, total), self.reading)


class Hierarchical(Method[Cdf]):
    """The ordered hierarchical mechanism under the policy. Without a policy: a tree over the whole domain."""

    name: ClassVar[str] = "hierarchical"
    uses_policy: ClassVar[bool] = True

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """See `Method.charges`."""
        return tuple(m for draw in self._draws(share) for m in draw.mechanisms("cdf"))

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`."""
        round_, (s_nodes, h_nodes) = self._round(share), self._average_noise
        average = variance(round_.s.scale) * s_nodes + variance(round_.h.scale) * h_nodes
        return promised(round_.reading, average, _TIGHTNESS if self._simulates else _NOT_SIMULATED)

    @cached_property
    def _forest(self) -> Forest:
        """The blocks and trees. Blocks are the parts of a partition, or as wide as a policy's distance."""
        setting = self.served
        secrets, fanout, size = setting.neighbors.secrets, setting.params.fanout, setting.grid.extents[0] + 1
        rooted = setting.neighbors.name == "replace_one"
        if isinstance(secrets, Partition) and secrets.widths[0] < size:
            return Forest(size, secrets.widths[0], fanout, rooted=True)
        theta = secrets.reach(setting.grid.extents) if rooted else size
        return Forest(size, size if theta >= size - 1 else theta, fanout, rooted)

    @cached_property
    def _average_noise(self) -> tuple[float, float]:
        return self._forest.average_noise()

    @cached_property
    def _s_share(self) -> float:
        """Part of epsilon for the S nodes; 0 where no secret pair lies in two blocks."""
        if isinstance(self.served.neighbors.secrets, Partition) or self._forest.blocks == 1:
            return 0.0
        return split(*self._average_noise, self._forest.height)

    def _draws(self, share: float) -> tuple[Laplace, Laplace]:
        epsilon, s_share = share * self.served.budget.epsilon, self._s_share
        s = Laplace(what="counts before blocks", scale=0.0, sensitivity=0.0)
        h = Laplace(what="tree nodes", scale=0.0, sensitivity=0.0)
        if s_share > 0:
            s = Laplace.of(s.what, s_share * epsilon, 1)
        if s_share < 1:
            h = Laplace.of(
                h.what, (1 - s_share) * epsilon, self._forest.height * self.served.neighbors.changes
            )
        return s, h

    def _round(self, share: float) -> OrderedHierarchical:
        if share not in self._made:
            self._made[share] = self._make(share)
        return self._made[share]

    @cached_property
    def _made(self) -> dict[float, OrderedHierarchical]:
        """Rounds by share, cached: making a round of millions of values takes seconds."""
        return {}

    def _make(self, share: float) -> OrderedHierarchical:
        forest, (s, h) = self._forest, self._draws(share)
        variances = variance(s.scale), variance(h.scale)
        ends = np.array([query[2:] for query in range_ends(self.served)], dtype=np.int64).reshape(-1, 2)
        noise = forest.range_variances(ends[:, 0], ends[:, 1], *variances)
        prefixes, largest = forest.prefix_variances(*variances), max(s.scale, h.scale)
        learned = _learned(forest, s.scale, h.scale) if self._simulates and largest else None

        def bounds(failure: float) -> LargestErrors:
            """Bound the errors; rounding adds at most half a record to each end of a range."""
            count = math.floor(largest_sum(prefixes, largest, failure) + 0.5)
            proven = LargestErrors(count, 2 * count)
            return proven if learned is None else min(learned(failure), proven, key=lambda each: each.count)

        return OrderedHierarchical(forest, s, h, read(self.served, noise.tolist(), bounds))

    @property
    def _simulates(self) -> bool:
        """Whether the domain is small enough for the errors to be simulated."""
        return self._forest.size <= _MOST_SIMULATED


@lru_cache(16)
def _learned(forest: Forest, s: float, h: float) -> Callable[[float], LargestErrors]:
    """Learn the largest errors from public noise of the scales of S and H nodes; see `simulated`."""
    rng, weight = np.random.default_rng(0), variance(s) / variance(h) if h else 1.0
    total = 0 if forest.rooted else None

    def errors() -> NDArray[np.float64]:
        nodes = [np.zeros(here.shape) for here in forest.present()]
        for level, here in zip(nodes, forest.present(), strict=True):
            level[here] = made_up(h, int(here.sum()), rng)
        return forest.infer(nodes, made_up(s, forest.blocks - 1, rng).astype(np.int64), weight, total)

    return simulated(errors() for _ in range(min(PILOTS + TRIALS, _SIMULATED // forest.size)))


class HierarchicalWhole(Hierarchical):
    """A tree over the whole domain, under any policy: it hides every pair, so also the policy's pairs."""

    name: ClassVar[str] = "hierarchical_whole"

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        if self.setting.neighbors.policy is not None:
            return None
        return InvalidValue("method", self.name, "without a policy, hierarchical is the same")

    @cached_property
    def served(self) -> Setting[Cdf]:
        """See `Method.served`: all pairs are hidden."""
        return self.setting.without_policy


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
