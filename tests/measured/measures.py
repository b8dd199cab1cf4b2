"""How far an answer is from the truth, for each task: the error methods share, and each promised figure."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from core.centers.found import Centers
from core.graphs.edges import Edges, WeightedEdges
from core.one_cluster.found import Found
from core.quantiles.found import FoundColumns, FoundValue
from core.sample_and_aggregate.found import Stable
from tests.measured.measure import INFINITE, Figures, Measure
from tests.measured.rectangles import RangesMeasure


class QuantilesMeasure(Measure):
    """Ranks: root mean square over the quantiles; every one within its promise."""

    @property
    def most(self) -> float:
        return len(self.points)

    def _all(self, found: Any) -> NDArray[np.float64]:
        pairs = zip(found.steps, found.probabilities, strict=True)
        return np.array([self._off(step, p * len(self.points)) for step, p in pairs])

    def error(self, found: Any) -> float:
        return float(np.sqrt(np.mean(self._all(found) ** 2)))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        return {"rank_error": float(self._all(found).max())}


class OneValueMeasure(Measure):
    """Rank of one quantile of a column, or the worst of several columns."""

    @property
    def most(self) -> float:
        return len(self.points)

    def _wanted(self) -> float:
        params = self.case.params
        probability = (
            params.get("quantile", 0.5) if self.case.task == "median" else float("largest" in params)
        )
        return float(probability * len(self.points))

    def error(self, found: Any) -> float:
        each = found.columns if isinstance(found, FoundColumns) else (found,)
        if self.case.task == "minimum" and any(map(self._outside, each)):
            return len(self.points)  # ranks do not tell how far outside of all records it is
        return max(self._off(one.step, self._wanted(), axis) for axis, one in enumerate(each))

    def _outside(self, one: FoundValue) -> bool:
        return bool(one.step < self._sorted[0, 0] or one.step > self._sorted[-1, 0])

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        return {"rank_error": self.error(found)}


class CdfMeasure(Measure):
    """Largest error of a cumulative count, and of the count of any range."""

    @property
    def most(self) -> float:
        return len(self.points)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return np.cumsum(np.bincount(self.points[:, 0], minlength=self.case.grid.extents[0] + 1))

    def error(self, found: Any) -> float:
        return float(np.abs(found.counts - self._counts).max())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        errors = np.append(
            0, found.counts - self._counts
        )  # a range's error is the difference of two of these
        return {"kolmogorov_records": self.error(found), "range_error": float(np.ptp(errors))}


class HistogramMeasure(Measure):
    """Counts of cells: root mean square error over the cells that hold records or are released."""

    def _errors(self, found: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the errors of the released counts, and the true counts of the cells that are missing."""
        keys, counts = np.unique(found.cells.keys(self.points), return_counts=True)
        both = np.union1d(keys, found.keys)
        true, released = np.zeros(len(both)), np.zeros(len(both))
        true[np.searchsorted(both, keys)] = counts
        released[np.searchsorted(both, found.keys)] = found.counts
        missing = ~np.isin(both, found.keys)
        return np.abs(released - true)[~missing], true[missing].astype(np.int64)

    def error(self, found: Any) -> float:
        errors = np.concatenate(self._errors(found))
        return float(np.sqrt(np.mean(errors**2)))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        errors, missing = self._errors(found)
        return {"cell_error": float(errors.max(initial=0)), "released_from": missing.max(initial=0) + 1.0}


class StatisticsMeasure(Measure):
    """Root mean square error of counts, of sums and means in parts of their columns' ranges, and of ranks.

    A quantile that its interval does not hold is as far off as can be.
    """

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        grid, n, figures = self.case.grid, len(self.points), {}
        result = found.result(grid)
        released = next((max(v.value, 0) for v in result.values if v.measure == "count"), 0)
        for value in result.values:
            off = 0.0
            if value.measure.startswith(("quantile", "minimum", "maximum")):
                name = "rank_error" if value.measure.startswith("quantile") else "extreme_error"
                figures[name] = max(figures.get(name, 0.0), self._rank_off(value))
                continue
            if value.column is not None:
                column = self.points[:, value.column].astype(np.float64)
                half = grid.extents[value.column] / 2
            if value.measure == "count":
                off = abs(value.value - n)
            elif value.measure == "sum":
                off = abs(value.value - column.sum()) / (2 * half)
            elif value.measure == "mean" and value.value is not None and n:
                off = abs(value.value - column.mean()) * released / half
            if value.measure != "variance":
                name = f"{value.measure}_error"
                figures[name] = max(figures.get(name, 0.0), off)
        return figures

    def _rank_off(self, value: Any) -> float:
        axis, n = value.column, len(self.points)
        ends = {"minimum": 0.0, "maximum": 1.0}
        wanted = n * (ends[value.measure] if value.measure in ends else float(value.measure.split("_")[1]))

        def at(units: float) -> int:
            return round((units - self.case.grid.lower[axis]) / self.case.grid.step)

        if value.low is not None:
            low = int((self._sorted[:, axis] < at(value.low)).sum())
            high = int((self._sorted[:, axis] <= at(value.high)).sum())
            if not low <= wanted <= high:
                return INFINITE
        return self._off(at(value.value), wanted, axis)

    def error(self, found: Any) -> float:
        return float(np.sqrt(np.mean(np.square(list(self.figures(found, {}).values())))))


class InteriorPointMeasure(Measure):
    """Whether the point is between the smallest and the largest record."""

    @property
    def least(self) -> float:
        """One failure in twenty."""
        return 0.05

    def error(self, found: Any) -> float:
        if found.step is None:
            return 1.0
        return float(not self._sorted[0, 0] <= found.step <= self._sorted[-1, 0])

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        needed = promises["records_needed"]
        if len(self.points) < needed:
            return {}
        return {"records_needed": INFINITE if self.error(found) else needed}


class ThresholdMeasure(Measure):
    """Mislabeled examples beyond the best threshold's."""

    @cached_property
    def _mislabeled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the number of errors changes, and the number from there to the next."""
        values, labels = self.points.T
        order = np.argsort(values, kind="stable")
        steps = np.where(labels[order] == 1, 1, -1)
        at, first = np.unique(values[order] + 1, return_index=True)
        sums = np.cumsum(steps)[np.append(first[1:], len(steps)) - 1]
        zeros = int((labels == 0).sum())
        return np.append(0, at), np.append(zeros, zeros + sums)

    def error(self, found: Any) -> float:
        at, errors = self._mislabeled
        return float(errors[np.searchsorted(at, found.step, side="right") - 1] - errors.min())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        error, n, needed = self.error(found), len(self.points), promises["records_needed"]
        if n < needed:
            return {"errors": error} if self.case.relation == "replace_one" else {}
        part = error / n
        return {
            "errors": error,
            "alpha": part,
            "records_needed": needed if part <= promises["alpha"] else INFINITE,
        }


class CentersMeasure(Measure):
    """Cost, and the counts of the records nearest to each center."""

    @property
    def _power(self) -> int:
        return 2 if self.case.task == "k_means" else 1

    @property
    def least(self) -> float:
        """A spread of a hundredth of the domain's diameter."""
        return float((0.01 * self.case.grid.diameter) ** self._power * len(self.points))

    def _nearest(self, found: Centers) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        grid = self.case.grid
        centers = (np.array(found.result(grid).centers) - np.asarray(grid.lower)) / grid.step
        distances, nearest = cKDTree(centers).query(self.points)
        return np.asarray(distances), np.asarray(nearest)

    def error(self, found: Any) -> float:
        return float((self._nearest(found)[0] ** self._power).sum())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        result = found.result(self.case.grid)
        if len(set(result.centers)) < len(result.centers):
            return {}  # of equal centers, either may be the nearest
        true = np.bincount(self._nearest(found)[1], minlength=len(result.counts))
        return {"count_error": float(np.abs(true - np.array(result.counts)).max())}


class BallMeasure(Measure):
    """Records that the ball lacks; its count. The smallest ball is not known, so no radius is compared."""

    @property
    def _target(self) -> int:
        return int(self.case.params["target"])

    def _inside(self, ball: Found) -> NDArray[np.bool_]:
        moved = self.points - ball.center
        return np.asarray((moved * moved).sum(axis=1) <= ball.radius**2)

    def error(self, found: Any) -> float:
        if not isinstance(found, Found):
            return float(self.case.grid.diameter)
        return float(max(found.radius, 1))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        if not isinstance(found, Found):
            enough = self._target <= len(self.points)
            return {"missing": INFINITE} if enough and promises["missing"] is not None else {}
        inside = int(self._inside(found).sum())
        off = {"count_error": float(abs(inside - found.count))}
        if self._target > len(self.points):
            return off
        return {**off, "missing": float(self._target - inside)}


class CoverMeasure(BallMeasure):
    """The same for each ball of a cover, of the records that no earlier ball holds."""

    def error(self, found: Any) -> float:
        return float(len(self.points) - sum(ball.count for ball in found.balls))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        left, counts, missing = np.ones(len(self.points), dtype=bool), [0.0], [0.0]
        for number in range(int(self.case.params["k"])):
            enough = left.sum() >= self._target
            if number >= len(found.balls):
                missing += [INFINITE] if enough and promises["missing"] is not None else []
                break
            inside = self._inside(found.balls[number]) & left
            counts.append(float(abs(int(inside.sum()) - found.balls[number].count)))
            if enough:
                missing.append(float(self._target - int(inside.sum())))
            left &= ~inside
        return {"count_error": max(counts), "missing": max(missing)}


class TreeCostMeasure(Measure):
    """The cost of a spanning tree, where a missing edge weighs the upper bound."""

    @cached_property
    def _cost(self) -> float:
        edges, nodes = WeightedEdges.of(self.points), self.case.grid.extents[0] + 1
        parent = list(range(nodes))

        def root(node: int) -> int:
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        cost, joined = 0, 0
        for i in np.argsort(edges.weights, kind="stable"):
            u, v = root(int(edges.keys[i] >> 31)), root(int(edges.keys[i] & ((1 << 31) - 1)))
            if u != v:
                parent[u], cost, joined = v, cost + int(edges.weights[i]), joined + 1
        return float(cost + (nodes - 1 - joined) * self.case.grid.extents[2])

    def error(self, found: Any) -> float:
        return abs(found.value - self._cost)

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        return {"error": self.error(found)}


class TrianglesMeasure(Measure):
    """The number of triangles."""

    @cached_property
    def _triangles(self) -> float:
        u, v, nodes = Edges.of(self.points).compact()
        matrix = np.zeros((nodes, nodes), dtype=np.int64)
        matrix[u, v] = matrix[v, u] = 1
        return float((matrix @ matrix * matrix).sum() / 6)

    def error(self, found: Any) -> float:
        return abs(found.value - self._triangles)

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        return {"error": self.error(found)}


class AnswersMeasure(Measure):
    """The distance from the middle answer, in parts of the widest axis; and what is promised about it.

    Per axis, a promise is measured as a part of what it allows, and 1 is allowed.
    """

    @property
    def least(self) -> float:
        """A thousandth of an axis."""
        return 0.001

    @cached_property
    def _middle(self) -> NDArray[np.float64]:
        return np.median(self.points, axis=0)

    def error(self, found: Any) -> float:
        if not isinstance(found, Stable):
            return 1.0
        return float((np.abs(found.value - self._middle) / np.asarray(self.case.grid.extents)).max())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        if not isinstance(found, Stable):
            return {}
        figures: dict[str, float] = {}
        stable = math.ceil(0.8 * len(self.points))
        if promises["errors"] is not None:
            apart = np.sort(np.abs(self.points - self._middle).max(axis=1))[stable - 1]
            off = np.abs(found.value - self._middle) - promises["spread_factor"] * apart
            figures["errors"] = self._part(off, promises["errors"])
        if promises["mean_errors"] is not None:
            figures["mean_errors"] = self._part(
                np.abs(found.value - self.points.mean(0)), promises["mean_errors"]
            )
        if found.failed is not None:
            figures["failed_error"] = float(abs(found.failed))
        if found.radius is not None and promises["radius_blocks"] is not None:
            moved = self.points - found.value
            inside = int(((moved * moved).sum(axis=1) <= found.radius**2).sum())
            figures["radius_blocks"] = float(stable - inside)
        return figures

    def _part(self, off: NDArray[np.float64], allowed: tuple[float, ...]) -> float:
        return float((off * self.case.grid.step / np.asarray(allowed)).max())


MEASURES: dict[str, type[Measure]] = {
    "quantiles": QuantilesMeasure,
    "median": OneValueMeasure,
    "minimum": OneValueMeasure,
    "cdf": CdfMeasure,
    "ranges": RangesMeasure,
    "histogram": HistogramMeasure,
    "statistics": StatisticsMeasure,
    "interior_point": InteriorPointMeasure,
    "threshold": ThresholdMeasure,
    "k_means": CentersMeasure,
    "k_median": CentersMeasure,
    "one_cluster": BallMeasure,
    "k_cover": CoverMeasure,
    "mst_cost": TreeCostMeasure,
    "triangles": TrianglesMeasure,
    "sample_and_aggregate": AnswersMeasure,
}

NOT_MEASURED: dict[str, str] = {
    "typical_rank_error": "a standard deviation for dense records, no bound",
    "range_standard_error": "a standard deviation, no bound",
    "standard_error": "a standard deviation, no bound",
    "smallest_group": "what the noise of the averages means for one group, no bound on the answer",
    "radius_factor": "the smallest ball is not known here; make bench-one-cluster plants one",
    "resolution": "belongs to radius_factor",
    "leftover": "the largest of errors",
    "spread_factor": "belongs to errors",
    "failed_most": "a limit that the noisy number of failed blocks is compared with",
    "units_error": "that of rows, or of another total with noise of the same kind",
    "found_from": "groups are not measured here; tests/core/statistics has them",
    "rows_error": "only where coverage is given",
}
"""Figures of plans that are no promise about a release, or that are measured elsewhere."""
