"""Count constraints of a Blowfish policy: what they add to sensitivity, and a table that keeps them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import EllipsisType

import numpy as np
import scipy
from numpy.typing import NDArray

from core.errors import InvalidValue
from core.policy import Cuts, Full, GridPoint, KnownCount, Policy, Secrets

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Region = tuple[slice | EllipsisType, ...]

_SEARCHED = 12  # most constraints whose policy graph is searched for its longest cycle and path
_ATOMS = 2048  # most boxes that the constraints may cut the grid into, where it has to be cut
_SWEEPS, _CLOSE = 1000, 1e-3  # most passes over overlapping constraints, and what is close enough, in records
_INFEASIBLE = 2  # what scipy's milp calls it


@dataclass(frozen=True)
class PolicyGraph:
    """How one change of a record can move the known counts (Blowfish, Section 8).

    Vertices are the q constraints, then v+ and v-. An edge leads from the count that a secret pair
    lowers to the one that it lifts; v+ stands for lowering none and v- for lifting none.

    Args:
        edges: shape (q + 2, q + 2).
    """

    edges: Bools

    def longest(self) -> int:
        """Most records in which constrained neighbors differ: longest cycle or path v+ to v-, in edges.

        Changes that leave every count as it was form a circulation on this graph (v+ and v- taken as
        one); a minimal one is a single simple cycle, through v+ or not (Theorem 8.2).
        """
        return max(self.longest_cycle(), self.longest_path())

    def longest_cycle(self) -> int:
        """Edges of the longest simple cycle among the constraints, 0 where there is none."""
        inner = self._rows(self.edges[:-2, :-2])
        most = 0
        for first in range(len(inner)):
            allowed = -1 << first  # the first of a cycle is its smallest vertex
            for seen, ends in _simple_paths(inner, 1 << first, allowed):
                if any(inner[end] >> first & 1 for end in _bits(ends)):
                    most = max(most, seen.bit_count())
        return most

    def longest_path(self) -> int:
        """Edges of the longest simple path from v+ to v-, at least 1."""
        inner = self._rows(self.edges[:-2, :-2])
        enters = self._rows(self.edges[-2:-1, :-2])[0]
        leaves = sum(1 << i for i in np.flatnonzero(self.edges[:-2, -1]).tolist())
        reached = (seen.bit_count() for seen, ends in _simple_paths(inner, enters, -1) if ends & leaves)
        return 1 + max(reached, default=0)

    @staticmethod
    def _rows(edges: Bools) -> list[int]:
        return [sum(1 << i for i in np.flatnonzero(row).tolist()) for row in edges]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _simple_paths(rows: Sequence[int], starts: int, allowed: int) -> Iterator[tuple[int, int]]:
    """Yield every vertex set that some simple path from `starts` visits, and the set of its possible ends."""
    level = {1 << start: 1 << start for start in _bits(starts & allowed)}
    while level:
        following: dict[int, int] = {}
        for seen, ends in level.items():
            yield seen, ends
            for end in _bits(ends):
                for step in _bits(rows[end] & allowed & ~seen):
                    grown = seen | 1 << step
                    following[grown] = following.get(grown, 0) | 1 << step
        level = following


@dataclass(frozen=True)
class _Boxes:
    """Distinct boxes of the constraints, and the atoms into which their faces cut the grid."""

    low: Ints
    high: Ints
    extents: GridPoint

    @classmethod
    def of(cls, constraints: Sequence[KnownCount], extents: GridPoint) -> "_Boxes":
        boxes = np.array(sorted({(known.low, known.high) for known in constraints}), dtype=np.int64)
        return cls(boxes[:, 0], boxes[:, 1], extents)

    def __len__(self) -> int:
        return len(self.low)

    @property
    def disjoint(self) -> bool:
        return _disjoint(self.low, self.high)

    def _faces(self) -> list[Ints]:
        return [
            np.unique(np.concatenate([[0], low, high[high < extent] + 1]))
            for low, high, extent in zip(self.low.T, self.high.T, self.extents, strict=True)
        ]

    @property
    def atoms(self) -> int:
        return int(np.prod([float(len(axis)) for axis in self._faces()]))

    def cut(self) -> tuple[Ints, Ints]:
        """Lowest and highest corners of the atoms, each shape (atoms, d)."""
        starts = self._faces()
        ends = [np.append(axis[1:] - 1, extent) for axis, extent in zip(starts, self.extents, strict=True)]
        return _corners(starts), _corners(ends)

    def members(self, atom_low: Ints) -> Bools:
        """Which atoms lie in which boxes, shape (atoms, q)."""
        inside = (self.low <= atom_low[:, None]) & (atom_low[:, None] <= self.high)
        return np.asarray(inside.all(axis=-1))


def _disjoint(low: Ints, high: Ints) -> bool:
    apart = (low[:, None] > high) | (high[:, None] < low)
    return not np.triu(~apart.any(axis=-1), 1).any()


def _corners(axes: Sequence[Ints]) -> Ints:
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def policy_graph(
    secrets: Secrets, constraints: Sequence[KnownCount], extents: GridPoint
) -> PolicyGraph | None:
    """Build the policy graph of distinct boxes, or None where some change lifts or lowers two of them.

    Args:
        secrets: the changes that a record may make.
        constraints: at least one.
        extents: largest coordinate of each axis, grid steps.
    """
    boxes = _Boxes.of(constraints, extents)
    low, high = boxes.cut()
    members = boxes.members(low)
    joined = secrets.joins(low[:, None], high[:, None], low, high)
    lowered = members.astype(np.float32) @ (~members).T.astype(np.float32)
    if (lowered[joined] > 1).any() or (lowered.T[joined] > 1).any():
        return None
    count = len(boxes)
    kinds, kind = np.unique(members, axis=0, return_inverse=True)
    edges = np.zeros((count + 2, count + 2), dtype=np.bool_)
    edges[count, count + 1] = True
    for a, b in product(range(len(kinds)), repeat=2):
        if a != b and joined[np.ix_(kind == a, kind == b)].any():
            down, up = np.flatnonzero(kinds[a] & ~kinds[b]), np.flatnonzero(kinds[b] & ~kinds[a])
            edges[down[0] if len(down) else count, up[0] if len(up) else count + 1] = True
    return PolicyGraph(edges)


def marginal(
    answers: NDArray[np.int64], axes: Sequence[int], cuts: Cuts, extents: GridPoint
) -> tuple[KnownCount, ...]:
    """Return the constraints that make a marginal table public.

    Args:
        answers: its counts, one dimension per axis in `axes`.
        axes: the axes that it keeps.
        cuts: cells of all axes of the grid; only those of `axes` matter.
        extents: largest coordinate of each axis, grid steps.

    Raises:
        InvalidValue: `answers` doesn't have one count per cell.
    """
    starts = [np.append(0, cuts[axis]) for axis in axes]
    ends = [np.append(cuts[axis] - 1, extents[axis]) for axis in axes]
    shape = tuple(map(len, starts))
    if answers.shape != shape:
        raise InvalidValue(
            "constraints",
            answers.tolist(),
            f"its cells are {shape}",
            f"has a marginal of shape {answers.shape}",
        )
    known = []
    for place, answer in np.ndenumerate(answers):
        low, high = [0] * len(extents), list(extents)
        for i, axis in enumerate(axes):
            low[axis], high[axis] = int(starts[i][place[i]]), int(ends[i][place[i]])
        known.append(KnownCount(tuple(low), tuple(high), int(answer)))
    return tuple(known)


def constrained_sensitivity(policy: Policy, cuts: Cuts, extents: GridPoint) -> int:
    """L1 sensitivity of a histogram between neighbors under the policy's constraints.

    Twice the most records in which neighbors differ. Under `edge_moves` every change is a secret pair:
    the policy graph's longest cycle or path, by search up to 12 constraints, and at most one more than
    their number beyond. Under `literal` the changes that complete a secret pair's may be any, so the
    graph is that of the complete secret graph: again a minimal set of changes is one simple cycle, as
    any cycle through a changed secret pair is a smaller neighbor by itself. Where no edge of the secret
    graph changes a known count, one record changes. Nothing changes where all changes are secret pairs,
    and none of these lies in two cells.

    Args:
        policy: with at least one constraint.
        cuts: the histogram's cells.
        extents: largest coordinate of each axis, grid steps.

    Raises:
        InvalidValue: one change can lift or lower two known counts at once, for which no bound is known.
    """
    secrets, boxes = policy.secrets, _Boxes.of(policy.constraints, extents)
    tied = any(secrets.crosses(_inside(known.cuts, extents)) for known in policy.constraints)
    if not secrets.crosses(cuts) and (policy.semantics == "edge_moves" or not tied):
        return 0
    if not tied:
        return 2
    if policy.semantics == "literal":
        secrets = Full()
    searched = len(boxes) <= _SEARCHED
    if boxes.atoms <= _ATOMS and (searched or not boxes.disjoint):
        graph = policy_graph(secrets, policy.constraints, extents)
        if graph is not None:
            return 2 * graph.longest() if searched else 2 * (len(boxes) + 1)
    elif boxes.disjoint:
        return 2 * (len(boxes) + 1)
    remedy = "boxes" if policy.semantics == "edge_moves" else "boxes, or semantics edge_moves"
    raise InvalidValue(
        "constraints",
        [(known.low, known.high) for known in policy.constraints],
        f"use disjoint {remedy}",
        "overlap so that one change of a record may move several of them at once",
    )


def _inside(cuts: Cuts, extents: GridPoint) -> Cuts:
    return [axis[axis <= extent] for axis, extent in zip(cuts, extents, strict=True)]


def check_satisfiable(constraints: Sequence[KnownCount], extents: GridPoint) -> None:
    """Refuse answers that no database has.

    Boxes are cut into atoms; a database exists if and only if whole numbers of records in the atoms
    add up to the answers.

    Raises:
        InvalidValue: there is none.
    """
    impossible = InvalidValue(
        "constraints",
        [known.answer for known in constraints],
        "no database has these counts",
        "contradict each other",
    )
    answers: dict[tuple[GridPoint, GridPoint], int] = {}
    for known in constraints:
        if answers.setdefault((known.low, known.high), known.answer) != known.answer:
            raise impossible
    if len(answers) < 2:
        return
    boxes = _Boxes.of(constraints, extents)
    if boxes.disjoint or boxes.atoms > _ATOMS:
        return
    kinds = np.unique(boxes.members(boxes.cut()[0]), axis=0)
    wanted = np.array([answers[key] for key in sorted(answers)])
    equal = scipy.optimize.LinearConstraint(kinds.T.astype(np.float64), wanted, wanted)
    cost, whole = np.zeros(len(kinds)), np.ones(len(kinds), dtype=np.int64)
    nonnegative = scipy.optimize.Bounds(0)
    found = scipy.optimize.milp(cost, integrality=whole, bounds=nonnegative, constraints=equal)
    if found.status == _INFEASIBLE:
        raise impossible


@dataclass(frozen=True)
class Consistency:
    """The known counts that a table of cells can keep.

    Args:
        regions: boxes of whole cells, as slices of the table.
        answers: the known count of each.
        disjoint: whether no two of them share a cell.
    """

    regions: tuple[Region, ...]
    answers: tuple[int, ...]
    disjoint: bool

    @classmethod
    def of(cls, constraints: Sequence[KnownCount], cuts: Cuts, extents: GridPoint) -> "Consistency":
        """Take the constraints whose boxes are made of whole cells; the others are left out."""
        edges = [np.concatenate([[0], axis, [e + 1]]) for axis, e in zip(cuts, extents, strict=True)]
        kept = {}
        for known in constraints:
            ends = [(low, high + 1) for low, high in zip(known.low, known.high, strict=True)]
            if all(np.isin(pair, axis).all() for pair, axis in zip(ends, edges, strict=True)):
                places = [
                    np.searchsorted(axis, pair).tolist() for pair, axis in zip(ends, edges, strict=True)
                ]
                kept[tuple(map(tuple, places))] = known.answer
        corners = np.array(list(kept), dtype=np.int64).reshape(len(kept), len(extents), 2)
        apart = _disjoint(corners[..., 0], corners[..., 1] - 1)
        regions = tuple(tuple(slice(*place) for place in places) for places in kept)
        return cls(regions, tuple(kept.values()), apart)

    def keep(self, counts: Ints, total: int) -> Ints:
        """Return the nearest non-negative table that has the known counts, rounded to whole records.

        Least squares: projections onto one known count after another, each onto the non-negative values
        with that sum. Disjoint regions, and what they leave, are met exactly in one pass. Of overlapping
        ones Dykstra's algorithm finds the nearest table, and rounding may leave each off by its cells.
        With noise of at most m in every cell, a cell of a disjoint table is off by at most 2 m + 1: the
        projection subtracts one number t from all cells of a region and clips at 0, and |t| <= m, as the
        true counts, which have the same sum, are within m of the noisy ones.

        Args:
            counts: noisy counts, the table's shape.
            total: number of records, public.
        """
        table = counts.astype(np.float64)
        if not self.disjoint:
            return np.rint(self._dykstra(table)).astype(np.int64)
        rest = np.ones(table.shape, dtype=np.bool_)
        kept = np.empty(table.shape, dtype=np.int64)
        for region, answer in zip(self.regions, self.answers, strict=True):
            kept[region] = _rounded(_simplex(table[region], answer), answer)
            rest[region] = False
        left = max(0, total - sum(self.answers))
        kept[rest] = _rounded(_simplex(table[rest], left), left)
        return kept

    def _dykstra(self, table: Floats) -> Floats:
        regions = (*self.regions, (...,))
        moved = [np.zeros_like(table[region]) for region in regions]
        for _ in range(_SWEEPS):
            change = 0.0  # of the corrections: the table itself may stand still for a while before it is done
            for i, region in enumerate(regions):
                wanted = table[region] + moved[i]
                known = i < len(self.answers)
                table[region] = _simplex(wanted, self.answers[i]) if known else np.maximum(wanted, 0)
                correction = wanted - table[region]
                change = max(change, float(np.abs(correction - moved[i]).max()))
                moved[i] = correction
            if change < _CLOSE:
                break
        return table


def _simplex(values: Floats, total: int) -> Floats:
    """Nearest non-negative values with the sum `total`: max(0, values - t)."""
    if not values.size:
        return values
    falling = -np.sort(-values, axis=None)
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling >= shifts)[-1]) if (falling >= shifts).any() else 0
    return np.asarray(np.maximum(0, values - shifts[last]))


def _rounded(values: Floats, total: int) -> Ints:
    """Whole numbers with the sum `total`, each less than 1 from its value: largest remainders go up."""
    down = np.floor(values).astype(np.int64)
    missing = int(np.clip(total - down.sum(), 0, values.size))
    up = np.argsort(down - values, axis=None, kind="stable")[:missing]
    down.flat[up] += 1
    return down
