"""What changes between two neighboring databases, and the sensitivities that follow."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from core.errors import InvalidValue
from core.policy import Cuts, Full, GridPoint, KnownCount, Policy, Secrets

Name = Literal["add_or_remove_one", "replace_one"]


@dataclass(frozen=True)
class Sensitivity:
    """Largest change of a vector-valued aggregate between neighbors, in three norms."""

    l1: float
    l2: float
    linf: float


@dataclass(frozen=True)
class Neighbors:
    """The neighbor relation of a run.

    `add_or_remove_one`: neighbors differ by one privacy unit more or less. The number of records is private.
    `replace_one`: neighbors differ in the record of one unit. The number of records is public.

    A replacement is one removal and one addition. So a mechanism that is (epsilon, delta)-private under
    `add_or_remove_one` is (2 epsilon, (1 + e^epsilon) delta)-private under `replace_one` (group privacy). The
    sensitivities below are tighter where a direct argument exists.

    A `policy` refines `replace_one`: a record is replaced only by one that it forms a secret pair with.
    Whatever holds for `replace_one` holds for every policy without constraints (Lemma 5.2). Under constraints
    neighbors may differ in many records, so the methods below refuse them. `core.histogram.constraints` has
    the sensitivities under constraints.

    Raises:
        ValueError: `name` is not one of the two relations, or a policy is given to the first.
    """

    name: Name
    policy: Policy | None = None

    def __post_init__(self) -> None:
        if self.name not in ("add_or_remove_one", "replace_one"):
            raise InvalidValue("neighbors", repr(self.name), "it must be add_or_remove_one or replace_one")
        if self.policy is not None and self.name != "replace_one":
            raise InvalidValue("neighbors", self.name, "a policy refines replace_one, so it must be that")

    @property
    def secrets(self) -> Secrets:
        """The secret graph: complete without a policy."""
        return Full() if self.policy is None else self.policy.secrets

    @property
    def constraints(self) -> tuple[KnownCount, ...]:
        """The public counts of the policy."""
        return () if self.policy is None else self.policy.constraints

    def _without_constraints(self) -> None:
        if self.constraints:
            raise InvalidValue(
                "constraints",
                self.constraints,
                "under constraints a neighbor differs in several records, which only histogram supports",
                "is set",
            )

    @property
    def changes(self) -> int:
        """How many additions or removals lead from a database to its neighbor."""
        self._without_constraints()
        return 1 if self.name == "add_or_remove_one" else 2

    def count(self) -> int:
        """Return the sensitivity of one counting query: 1 under both relations."""
        self._without_constraints()
        return 1

    def histogram(self, cuts: Cuts | None = None) -> Sensitivity:
        """Return the sensitivity of the counts of disjoint cells, of which a record is in one.

        A replacement changes two counts by 1. Where no secret pair lies in two cells, it changes none.

        Args:
            cuts: the cells; None stands for any cells.
        """
        self._without_constraints()
        if self.name == "replace_one" and cuts is not None and not self.secrets.crosses(cuts):
            return Sensitivity(l1=0, l2=0, linf=0)
        return Sensitivity(l1=self.changes, l2=math.sqrt(self.changes), linf=1)

    def cumulative(self, size: int) -> Sensitivity:
        """Return the sensitivity of the cumulative histogram s_1, ..., s_size of one axis of `size` values.

        If a record moves from the i-th to the j-th value, exactly |i - j| of these counts change by 1. The
        last count is the number of records and does not change. An added record may change all counts.
        """
        self._without_constraints()
        changed = size if self.name == "add_or_remove_one" else self.secrets.reach((size - 1,))
        return Sensitivity(l1=changed, l2=math.sqrt(changed), linf=min(1, changed))

    def linear_sum(self, weight: float, extents: GridPoint) -> float:
        """Return the L1 sensitivity of sum_i w_i x_i over records x_i, in steps from the lower bounds.

        A replacement within a secret pair changes the sum by |w_i| times the distance of the pair. An added
        record changes it by |w_i| times its own L1 norm (He, Machanavajjhala and Ding 2014, Section 5).

        Args:
            weight: largest |w_i|.
            extents: largest coordinate of each axis.
        """
        self._without_constraints()
        longest = sum(extents) if self.name == "add_or_remove_one" else self.secrets.reach(extents)
        return weight * longest


def compose_in_sequence(releases: Sequence[tuple[Neighbors, float]]) -> float:
    """Return the epsilon of several releases about the same records, which is their sum (Theorem 4.1).

    Args:
        releases: relation and epsilon of each.

    Raises:
        ValueError: they are not all about the same relation and policy.
    """
    if len({neighbors for neighbors, _ in releases}) > 1:
        raise ValueError(
            "The policy differs between releases: epsilons add up only under one and the same policy."
        )
    return math.fsum(epsilon for _, epsilon in releases)


def compose_in_parallel(
    neighbors: Neighbors, epsilons: Sequence[float], parts: Sequence[Collection[int]]
) -> float:
    """Return the epsilon of releases that each see their own records: the largest (Theorems 4.2 and 4.3).

    Parts are defined by the identities of records, so a replacement never moves a record from one part to
    another. Parts that are defined by values would not have that property. A constraint counts the records of
    all parts. So wherever a secret pair changes its count, a change in one part forces a change in another.

    Args:
        neighbors: the relation of all releases.
        epsilons: of each release.
        parts: the identities that each release sees.

    Raises:
        ValueError: two parts share a record, or a constraint ties parts together.
    """
    if len(epsilons) != len(parts):
        raise ValueError(f"There are {len(epsilons)} epsilons for {len(parts)} parts: give one per part.")
    if any(not set(a).isdisjoint(b) for a, b in combinations(parts, 2)):
        raise ValueError("The parts share a record: releases in parallel see disjoint records.")
    if len(parts) > 1 and any(neighbors.secrets.crosses(known.cuts) for known in neighbors.constraints):
        raise ValueError(
            "The constraints count records of several parts, and a secret pair changes them: "
            "such releases compose in sequence."
        )
    return max(epsilons, default=0.0)
