"""Blowfish policies: which values of a record must not be told apart, and which counts are public."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidValue

Semantics = Literal["literal", "edge_moves"]
Ints = NDArray[np.int64]
GridPoint = tuple[int, ...]

Cuts = Sequence[Ints]
"""Cells of a grid: for each axis the ascending first coordinates of all cells but the first, grid steps."""


class Secrets(Protocol):
    """The secret graph G of a Blowfish policy: an edge (x, y) hides whether a record is x or y.

    Its vertices are grid points. Source: He, Machanavajjhala and Ding 2014, Section 3.
    """

    def check(self, extents: GridPoint) -> None:
        """Raise an InvalidValue where the graph does not fit a grid of these extents."""

    def crosses(self, cuts: Cuts) -> bool:
        """Return whether some edge joins two cells."""

    def reach(self, extents: GridPoint) -> int:
        """Return the largest L1 distance of an edge, grid steps."""

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """Return whether some edge leads from box a to box b.

        Args:
            a_low: lowest corners, shape (..., d); all four broadcast against each other.
            a_high: highest corners, inclusive.
            b_low: see `a_low`; the boxes are equal or disjoint.
            b_high: see `a_high`.

        Returns:
            Shape (...); it is undefined for equal boxes.
        """


def _gaps(a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> Ints:
    """Return the distance per axis between intervals of integers, 0 where they overlap."""
    return np.asarray(np.maximum(0, np.maximum(a_low - b_high, b_low - a_high)))


@dataclass(frozen=True)
class Full:
    """Every two values are a secret pair, as `replace_one` has it without a policy."""

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        return any(len(axis) > 0 for axis in cuts)

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        return sum(extents)

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        return np.ones(np.broadcast_shapes(a_low.shape, b_low.shape)[:-1], dtype=np.bool_)


@dataclass(frozen=True)
class Attribute:
    """Values that differ on exactly one axis are a secret pair."""

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        return any(len(axis) > 0 for axis in cuts)

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        return max(extents)

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        return np.asarray((_gaps(a_low, a_high, b_low, b_high) > 0).sum(axis=-1) <= 1)


@dataclass(frozen=True)
class Partition:
    """Values in the same part are a secret pair; parts are boxes of equal widths.

    Args:
        widths: width of a part on each axis, grid steps; a part starts at every multiple.

    Raises:
        InvalidValue: a width below 1, or parts of one point each, which hide nothing.
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1 or max(self.widths) < 2:
            raise InvalidValue(
                "partition",
                list(self.widths),
                "its widths must be whole numbers of steps of at least 1, and not all 1",
            )

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""
        if len(self.widths) != len(extents):
            raise InvalidValue(
                "partition",
                list(self.widths),
                "give one width per axis",
                f"has {len(self.widths)} widths for {len(extents)} axes",
            )

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        return any(bool((axis % width > 0).any()) for axis, width in zip(cuts, self.widths, strict=True))

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        return sum(min(width - 1, extent) for width, extent in zip(self.widths, extents, strict=True))

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        parts = (corner // np.asarray(self.widths) for corner in (a_low, a_high, b_low, b_high))
        return np.asarray((_gaps(*parts) == 0).all(axis=-1))


@dataclass(frozen=True)
class Distance:
    """Values at most `theta` apart are a secret pair. Values are the grid points that records are rounded to.

    Args:
        theta: L1 distance, grid steps.

    Raises:
        InvalidValue: `theta` is below 1.
    """

    theta: int

    def __post_init__(self) -> None:
        if self.theta < 1:
            raise InvalidValue("distance", self.theta, "it must be at least one step")

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""
        if self.theta > sum(extents):
            raise InvalidValue(
                "distance",
                self.theta,
                "use a smaller distance, or the full policy",
                f"is {self.theta} steps, larger than the domain's {sum(extents)}",
            )

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        return any(len(axis) > 0 for axis in cuts)

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        return min(self.theta, sum(extents))

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        return np.asarray(_gaps(a_low, a_high, b_low, b_high).sum(axis=-1) <= self.theta)


@dataclass(frozen=True)
class DistancePerAxis:
    """Values at most `thetas[i]` apart on every axis i are a secret pair; an axis of distance 0 is public.

    Args:
        thetas: distance on each axis, grid steps.

    Raises:
        InvalidValue: a distance is below 0, or all are 0, which hides nothing.
    """

    thetas: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.thetas or min(self.thetas) < 0 or max(self.thetas) < 1:
            raise InvalidValue(
                "distance",
                list(self.thetas),
                "its distances must be whole numbers of steps of at least 0, and not all 0",
            )

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""
        if len(self.thetas) != len(extents):
            raise InvalidValue(
                "distance",
                list(self.thetas),
                "give one distance per axis, or one for all",
                f"has {len(self.thetas)} distances for {len(extents)} axes",
            )
        for theta, extent in zip(self.thetas, extents, strict=True):
            if theta > extent:
                raise InvalidValue(
                    "distance",
                    list(self.thetas),
                    "use a smaller distance",
                    f"is {theta} steps on one axis, larger than the {extent} of the domain",
                )

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        return any(theta > 0 and len(axis) > 0 for axis, theta in zip(cuts, self.thetas, strict=True))

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        return sum(min(theta, extent) for theta, extent in zip(self.thetas, extents, strict=True))

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        return np.asarray((_gaps(a_low, a_high, b_low, b_high) <= np.asarray(self.thetas)).all(axis=-1))


@dataclass(frozen=True)
class Graph:
    """An explicit list of secret pairs, for small domains.

    Args:
        edges: pairs of different grid points, undirected.

    Raises:
        InvalidValue: no edge, or one from a point to itself.
    """

    edges: tuple[tuple[GridPoint, GridPoint], ...]

    def __post_init__(self) -> None:
        if not self.edges:
            raise InvalidValue("graph", self.edges, "it hides nothing", "has no edges")
        for x, y in self.edges:
            if len(x) != len(y) or x == y:
                raise InvalidValue(
                    "graph", (x, y), "its ends must be two points", f"has the edge {list(x)}, {list(y)}"
                )

    def check(self, extents: GridPoint) -> None:
        """See `Secrets.check`."""
        for point in (end for edge in self.edges for end in edge):
            if len(point) != len(extents) or any(
                not 0 <= x <= e for x, e in zip(point, extents, strict=True)
            ):
                raise InvalidValue(
                    "graph",
                    point,
                    f"it must lie on the grid, from 0 to {list(extents)} steps",
                    f"has the point {list(point)}",
                )

    def _ends(self) -> tuple[Ints, Ints]:
        pairs = np.array(self.edges, dtype=np.int64)
        both = np.concatenate([pairs, pairs[:, ::-1]])
        return both[:, 0], both[:, 1]

    def crosses(self, cuts: Cuts) -> bool:
        """See `Secrets.crosses`."""
        x, y = self._ends()
        return any(
            bool((np.searchsorted(axis, x[:, i], "right") != np.searchsorted(axis, y[:, i], "right")).any())
            for i, axis in enumerate(cuts)
        )

    def reach(self, extents: GridPoint) -> int:
        """See `Secrets.reach`."""
        x, y = self._ends()
        return int(np.abs(x - y).sum(axis=1).max())

    def joins(self, a_low: Ints, a_high: Ints, b_low: Ints, b_high: Ints) -> NDArray[np.bool_]:
        """See `Secrets.joins`."""
        joined = np.zeros(np.broadcast_shapes(a_low.shape, b_low.shape)[:-1], dtype=np.bool_)
        for x, y in zip(*self._ends(), strict=True):
            from_a = ((a_low <= x) & (x <= a_high)).all(axis=-1)
            joined |= from_a & ((b_low <= y) & (y <= b_high)).all(axis=-1)
        return joined


@dataclass(frozen=True)
class KnownCount:
    """A constraint: the number of records in a box is public.

    Args:
        low: lowest corner, grid steps.
        high: highest corner, inclusive.
        answer: the count.

    Raises:
        InvalidValue: the box is empty or the answer negative.
    """

    low: GridPoint
    high: GridPoint
    answer: int

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or any(a > b for a, b in zip(self.low, self.high, strict=True)):
            raise InvalidValue(
                "constraints",
                (self.low, self.high),
                "give one lower and one upper value per axis, the lower at most the upper",
                f"has the box from {list(self.low)} to {list(self.high)}",
            )
        if self.answer < 0:
            raise InvalidValue(
                "constraints", self.answer, "a count is at least 0", f"has the answer {self.answer}"
            )

    @property
    def cuts(self) -> tuple[Ints, ...]:
        """Cells that separate the box from the rest of the grid."""
        return tuple(
            np.array([x for x in (low, high + 1) if x > 0], dtype=np.int64)
            for low, high in zip(self.low, self.high, strict=True)
        )


@dataclass(frozen=True)
class Policy:
    """A Blowfish policy: which values must not be told apart, and which counts are public.

    Under constraints neighbors may differ in several records, and `semantics` says in which changes.
    - `literal` is Definition 4.1 as written: at least one change is a secret pair, the others may be any.
    - `edge_moves` allows secret pairs alone. It hides less, but under it the noise of Theorem 8.2 suffices
      for incomplete graphs.

    Args:
        secrets: the secret graph.
        constraints: public answers to count queries; they are taken as true.
        semantics: which databases are neighbors under constraints.
    """

    secrets: Secrets = field(default_factory=Full)
    constraints: tuple[KnownCount, ...] = ()
    semantics: Semantics = "literal"

    def __post_init__(self) -> None:
        if self.semantics not in ("literal", "edge_moves"):
            raise InvalidValue("semantics", repr(self.semantics), "it must be literal or edge_moves")

    def check(self, extents: GridPoint) -> None:
        """Raise an InvalidValue where the policy does not fit a grid of these extents."""
        self.secrets.check(extents)
        for known in self.constraints:
            if len(known.low) != len(extents) or any(
                low < 0 or high > extent
                for low, high, extent in zip(known.low, known.high, extents, strict=True)
            ):
                raise InvalidValue(
                    "constraints",
                    (known.low, known.high),
                    f"it must lie on the grid, from 0 to {list(extents)} steps",
                    f"has the box from {list(known.low)} to {list(known.high)}",
                )
