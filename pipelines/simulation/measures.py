"""How far an answer is from the truth, for each task: the error methods share, and each promised figure."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.centers.found import Centers
from core.one_cluster.found import Found
from core.quantiles.found import FoundColumns, FoundValue
from core.sample_and_aggregate.found import Stable
from pipelines.simulation.bounds_measure import BoundsMeasure
from pipelines.simulation.graph_measures import TreeCostMeasure, TrianglesMeasure
from pipelines.simulation.measure import INFINITE, Figures, Measure
from pipelines.simulation.rectangles import RangesMeasure
from pipelines.simulation.statistics_measure import StatisticsMeasure


class QuantilesMeasure(Measure):
    """Ranks: root mean square over the quantiles; every one within its promise, and in its interval."""

    @property
    def most(self) -> float:
        """See `Measure.most`."""
        return len(self.points)

    def _all(self, found: Any) -> NDArray[np.float64]:
        pairs = zip(found.steps, found.probabilities, strict=True)
        return np.array([self._off(step, p * len(self.points)) for step, p in pairs])

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return float(np.sqrt(np.mean(self._all(found) ** 2)))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        intervals = found.intervals or (None,) * len(found.steps)
        each = zip(found.steps, intervals, found.probabilities, strict=True)
        return {
            "rank_error": max(self._off_or_missed(at, ends, p * len(self.points)) for at, ends, p in each)
        }


class OneValueMeasure(Measure):
    """Rank of one quantile of a column, or the worst of several columns; every one in its interval."""

    @property
    def most(self) -> float:
        """See `Measure.most`."""
        return len(self.points)

    def _wanted(self) -> float:
        params = self.case.params
        probability = (
            params.get("quantile", 0.5) if self.case.task == "median" else float(params.get("largest", False))
        )
        return float(probability * len(self.points))

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        each = self._each(found)
        if self.case.task == "minimum" and any(map(self._outside, each)):
            return len(self.points)  # ranks do not tell how far outside of all records it is
        return max(self._off(one.step, self._wanted(), axis) for axis, one in enumerate(each))

    def _each(self, found: FoundValue | FoundColumns) -> tuple[FoundValue, ...]:
        return found.columns if isinstance(found, FoundColumns) else (found,)

    def _outside(self, one: FoundValue) -> bool:
        return bool(one.step < self._sorted[0, 0] or one.step > self._sorted[-1, 0])

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        wanted = self._wanted()
        each = [
            self._off_or_missed(one.step, one.interval, wanted, axis)
            for axis, one in enumerate(self._each(found))
        ]
        return {"rank_error": max(self.error(found), *each)}


class CdfMeasure(Measure):
    """Largest error of a cumulative count, and of the count of any range."""

    @property
    def most(self) -> float:
        """See `Measure.most`."""
        return len(self.points)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return np.cumsum(np.bincount(self.points[:, 0], minlength=self.case.grid.extents[0] + 1))

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return float(np.abs(found.counts - self._counts).max())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
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
        """See `Measure.error`."""
        errors = np.concatenate(self._errors(found))
        return float(np.sqrt(np.mean(errors**2)))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        errors, missing = self._errors(found)
        return {"cell_error": float(errors.max(initial=0)), "released_from": missing.max(initial=0) + 1.0}


class InteriorPointMeasure(Measure):
    """Whether the point is between the smallest and the largest record."""

    @property
    def least(self) -> float:
        """One failure in twenty."""
        return 0.05

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        if found.step is None:
            return 1.0
        return float(not self._sorted[0, 0] <= found.step <= self._sorted[-1, 0])

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        needed = promises["records_needed"]
        if len(self.points) < needed:
            return {}
        return {"records_needed": INFINITE if self.error(found) else needed}


class ThresholdMeasure(Measure):
    """Mislabeled examples beyond the best threshold's."""

    @cached_property
    def _mislabeled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the number of errors changes, and the number from there to the next."""
        values = self.points[:, 0]
        labels = self.points[:, 1] >= max(1, -(-self.case.grid.extents[1] // 2))
        order = np.argsort(values, kind="stable")
        steps = np.where(labels[order], 1, -1)
        at, first = np.unique(values[order] + 1, return_index=True)
        sums = np.cumsum(steps)[np.append(first[1:], len(steps)) - 1]
        zeros = int((~labels).sum())
        return np.append(0, at), np.append(zeros, zeros + sums)

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        at, errors = self._mislabeled
        return float(errors[np.searchsorted(at, found.step, side="right") - 1] - errors.min())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
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
        from scipy.spatial import cKDTree

        grid = self.case.grid
        centers = (np.array(found.result(grid).centers) - np.asarray(grid.lower)) / grid.step
        distances, nearest = cKDTree(centers).query(self.points)
        return np.asarray(distances), np.asarray(nearest)

    def error(self, found: Any) -> float:
        """See `Measure.error`."""
        return float((self._nearest(found)[0] ** self._power).sum())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
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
        """See `Measure.error`."""
        if not isinstance(found, Found):
            return float(self.case.grid.diameter)
        return float(max(found.radius, 1))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
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
        """See `Measure.error`."""
        return float(len(self.points) - sum(ball.count for ball in found.balls))

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        left, counts, missing = np.ones(len(self.points), dtype=bool), [0.0], [0.0]
        if self.case.params.get("target") is None:  # the targets follow from a noisy number of records
            off = {} if found.rows is None else {"rows_error": float(abs(found.rows - len(self.points)))}
            for ball in found.balls:
                inside = self._inside(ball) & left
                counts.append(float(abs(int(inside.sum()) - ball.count)))
                left &= ~inside
            return {"count_error": max(counts), **off}
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
        """See `Measure.error`."""
        if not isinstance(found, Stable):
            return 1.0
        return float((np.abs(found.value - self._middle) / np.asarray(self.case.grid.extents)).max())

    def figures(self, found: Any, promises: Mapping[str, Any]) -> Figures:
        """See `Measure.figures`."""
        if not isinstance(found, Stable) or not len(self.points):  # no block has an answer
            return {}
        figures: dict[str, float] = {}
        stable = math.ceil(self.case.params.get("stable_fraction", 0.8) * len(self.points))
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
    "bounds": BoundsMeasure,
    "mst_cost": TreeCostMeasure,
    "triangles": TrianglesMeasure,
    "sample_and_aggregate": AnswersMeasure,
}
