"""Known counts of a Blowfish policy: a histogram's sensitivity under them, and a table that keeps them."""

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

_SEARCHED = 12  # most distinct boxes whose policy graph is searched for its longest cycle and path
_ATOMS = 2048  # most atoms into which the grid is cut; beyond, nothing is computed from them
_SWEEPS, _CLOSE = 1000, 1e-3  # most passes over overlapping constraints; change that ends them
_INFEASIBLE = 2  # what scipy's milp calls it


@dataclass(frozen=True)
class PolicyGraph:
    """How one change of a record can move the known counts (Blowfish, Section 8).

    Vertices are the q constraints, then v+ and v-. A change of a record from one value of a secret pair to
    the other gives an edge. It leads from the known count that the change lowers to the one it lifts. It
    starts at v+ if the change lowers none, and ends at v- if it lifts none.

    Args:
        edges: shape (q + 2, q + 2).
    """

    edges: Bools

    def longest(self) -> int:
        """Most records in which constrained neighbors differ.

        Take v+ and v- as one vertex. Changes that together leave every known count the same form a
        circulation on this graph. A minimal circulation is a single simple cycle, which may pass through that
        vertex (Theorem 8.2). So the result is the number of edges of the longest simple cycle, or of the
        longest simple path from v+ to v-.
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
    """Yield the vertex sets of simple paths from `starts`, each with the possible last vertices."""
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
    """Distinct boxes of the constraints. Their faces cut the grid into smaller boxes, the atoms."""

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
        """Say which atoms lie in which boxes, shape (atoms, q)."""
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
    """Build the policy graph of distinct boxes; None if one change of a record can lift or lower two of them.

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
    if (lowered[joined] > 1).any():  # what is lowered one way is lifted the other way
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
        answers: the counts of the table, one dimension per axis in `axes`.
        axes: the axes that the table keeps.
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

    The sensitivity is twice the largest number of records in which neighbors differ. This number is:

    1. If no secret pair changes a known count: one record. The sensitivity is 0 if, besides, no secret pair
       lies in two cells.
    2. Under `edge_moves` every change is a secret pair. The number is the length of the policy graph's
       longest cycle or path. Here too the sensitivity is 0 if no secret pair lies in two cells.
    3. Under `literal` one change is a secret pair, and the changes that restore the known counts may be any.
       So the policy graph is that of the complete secret graph. Again a minimal set of changes is one simple
       cycle, because a cycle through the changed secret pair is by itself a neighbor with fewer changes.

    The longest cycle or path is searched for up to 12 distinct boxes and 2,048 atoms. Beyond, the number of
    distinct boxes plus one bounds it.

    Args:
        policy: with at least one constraint.
        cuts: the histogram's cells.
        extents: largest coordinate of each axis, grid steps.

    Raises:
        InvalidValue: one change can lift or lower two known counts at once, for which no bound is known. Also
            raised for overlapping boxes that make more than 2,048 atoms, for which this is not examined.
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
        "the sensitivity is known for sparse counts alone (He, Machanavajjhala and Ding 2014, Theorem 8.2), "
        f"and hard to find for others (Theorem 8.1), so use disjoint {remedy}",
        "overlap so that one change of a record may move several at once, as overlapping marginals do",
    )


def _inside(cuts: Cuts, extents: GridPoint) -> Cuts:
    return [axis[axis <= extent] for axis, extent in zip(cuts, extents, strict=True)]


def check_satisfiable(constraints: Sequence[KnownCount], extents: GridPoint) -> None:
    """Refuse known counts that no database has, as far as this can be found out.

    Two answers for one box are compared. Overlapping boxes are cut into atoms: a database with these counts
    exists if and only if there are whole numbers of records in the atoms that add up to the answers.
    Overlapping boxes that make more than 2,048 atoms are not examined.

    Raises:
        InvalidValue: no database has these counts.
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

    def largest(self, shape: tuple[int, ...]) -> int | None:
        """Return the largest known count, if disjoint regions hold all cells of the table; else None."""
        cells = np.broadcast_to(0, shape)
        every = sum(cells[region].size for region in self.regions) == cells.size
        return max(self.answers) if self.disjoint and every else None

    def keep(self, counts: Ints, total: int) -> Ints:
        """Return the nearest non-negative table that has the known counts, rounded to whole records.

        Nearest means least squares. A region is projected onto the non-negative values whose sum is its known
        count.

        - Disjoint regions: one projection of each region, and one of the cells outside of all regions. The
          table then has the known counts exactly.
        - Overlapping regions: Dykstra's algorithm repeats the projections and finds the nearest table.
          Rounding may change the count of a region by up to its number of cells.

        Error for disjoint regions, if the noise of every cell is at most m:

        1. The projection subtracts one number t from all cells of a region, and clips at 0.
        2. |t| <= m, because the true counts have the same sum and are within m of the noisy ones.
        3. So a cell is off by at most 2 m, and rounding adds at most 1.

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
            change = 0.0  # of the corrections: the table may stand still for some passes before it converges
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
    last = np.flatnonzero(falling >= shifts)[-1]  # the first one is, as the total is at least 0
    return np.asarray(np.maximum(0, values - shifts[last]))


def _rounded(values: Floats, total: int) -> Ints:
    """Round to whole numbers with the sum `total`: the largest remainders are rounded up, the others down."""
    down = np.floor(values).astype(np.int64)
    missing = int(np.clip(total - down.sum(), 0, values.size))
    up = np.argsort(down - values, axis=None, kind="stable")[:missing]
    down.flat[up] += 1
    return down
