"""Which grid points lie inside released balls: a public predicate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid, Points, distances_squared


@dataclass(frozen=True, eq=False)
class Balls:
    """Closed L2 balls on the grid.

    Args:
        centers: shape (m, d), grid steps, each a point of the grid, or between points with geography.
        radii: shape (m,), grid steps, each at most the diameter + 1.
    """

    centers: NDArray[np.int64] | NDArray[np.float64]
    radii: NDArray[np.int64] | NDArray[np.float64]

    @classmethod
    def of(cls, grid: Grid, balls: Sequence[Mapping[str, Any]]) -> "Balls":
        """Convert released balls, each `{center, radius}` in data units, back to grid steps.

        With geography a ball is the cap of its center and radius, which is a ball of points, too; see
        `core.geography.Geography.ball`. Rows within about a step of its edge may be on either side.

        Raises:
            KeyError, TypeError, ValueError: one of them is not a ball of this grid.
        """
        centers = np.array([ball["center"] for ball in balls], dtype=np.float64)
        radii = np.array([ball["radius"] for ball in balls], dtype=np.float64)
        if centers.shape != (len(balls), grid.columns) or not len(balls):
            raise ValueError(f"balls: each needs a center of {grid.columns} values.")
        placed = [grid.place_ball(center, radius) for center, radius in zip(centers, radii, strict=True)]
        steps, reach = np.array([at for at, _ in placed]), np.array([wide for _, wide in placed])
        if grid.geography is None:
            steps, reach = np.rint(steps), np.rint(reach)
        # Squared distances and radii must not wrap; NaN fails these comparisons too.
        if not ((steps >= 0) & (steps <= np.asarray(grid.extents))).all():
            raise ValueError("balls: each center must lie in the domain.")
        if not ((reach >= 0) & (reach <= grid.diameter + 1)).all():
            raise ValueError("balls: each radius must be from 0 to the domain's diameter.")
        if grid.geography is not None:
            return cls(steps, reach)
        return cls(steps.astype(np.int64), reach.astype(np.int64))

    def hold(self, points: Points) -> NDArray[np.bool_]:
        """Say which of `points` (n, d) lie in at least one ball, shape (n,); exact in integers."""
        inside = np.zeros(len(points), dtype=np.bool_)
        for center, radius in zip(self.centers, self.radii, strict=True):
            inside |= distances_squared(points, center) <= radius**2
        return inside
