"""Weighted k-means and k-median of a few thousand released points: no noise is added here."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PUBLIC_SEED = 0xCE27E5  # privacy does not rest on it: the points are private outputs already
_WEISZFELD = 8


@dataclass(frozen=True)
class Solver:
    """Several starts: each draws centers by distance, then iterates. The start of the lowest cost wins.

    The code serves means and medians, any weights, and fewer points than centers. It never fails and never
    warns, because a private stage must not do anything observable that depends on the data.

    Seeding draws each next center with probability proportional to weight times distance^power and
    keeps the best of a few draws (Arthur and Vassilvitskii 2007). The iterations move a center to the
    mean of its points, or, for power 1, toward their median (Weiszfeld 1937).

    Args:
        power: of the distance in the cost: 2 for k-means, 1 for k-median.
        starts: how many seedings.
        iterations: most iterations of one start.
    """

    power: int
    starts: int = 10
    iterations: int = 100

    def centers(self, points: Floats, weights: Floats, k: int) -> Floats:
        """Return k centers, or fewer: if at most k points have positive weight, these points are returned.

        Args:
            points: shape (m, q), distinct.
            weights: shape (m,), not negative.
            k: how many centers.

        Returns:
            Shape (min(k, positive weights), q).
        """
        points, weights = points[weights > 0], weights[weights > 0]
        if len(points) <= k:
            return points
        rng = np.random.default_rng(_PUBLIC_SEED)
        best, least = points[:k], math.inf
        for _ in range(self.starts):
            centers = self.descend(points, weights, self._seeded(points, weights, k, rng))
            cost = self.cost(points, weights, centers)
            if cost < least:
                best, least = centers, cost
        return best

    def cost(self, points: Floats, weights: Floats, centers: Floats) -> float:
        """Weighted sum of distance^power to the nearest center."""
        return float(weights @ self._powers(points, centers).min(axis=1))

    def descend(self, points: Floats, weights: Floats, centers: Floats) -> Floats:
        """Iterate from `centers`, shape (k, q), until they no longer move."""
        scale = float(np.abs(points).max()) + 1e-300
        for _ in range(self.iterations):
            label = np.argmin(self._powers(points, centers), axis=1)
            moved = self._improved(points, weights, label, centers)
            done = np.abs(moved - centers).max() <= 1e-6 * scale
            centers = moved
            if done:
                break
        return centers

    def _powers(self, points: Floats, centers: Floats) -> Floats:
        squares = squared_distances(points, centers)
        return squares if self.power == 2 else np.sqrt(squares)

    def _seeded(self, points: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Floats:
        draws = 2 + int(np.log(k))
        chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
        least = self._powers(points, points[chosen])[:, 0]
        while len(chosen) < k:
            # rounding may make all distances 0: then points are drawn by weight alone
            chance = weights * least if (weights * least).sum() > 0 else weights
            tried = rng.choice(len(points), size=draws, p=chance / chance.sum())
            left = np.minimum(least[:, None], self._powers(points, points[tried]))
            winner = int(np.argmin(weights @ left))
            chosen.append(int(tried[winner]))
            least = left[:, winner]
        return points[chosen]

    def _improved(self, points: Floats, weights: Floats, label: NDArray[np.intp], centers: Floats) -> Floats:
        if self.power == 2:
            return _averages(points, weights, label, centers)
        for _ in range(_WEISZFELD):
            distance = np.linalg.norm(points - centers[label], axis=1)
            shortest = 1e-3 * float(distance.mean())  # a point at its center would weigh infinitely much
            if shortest == 0:
                break
            centers = _averages(points, weights / np.maximum(distance, shortest), label, centers)
        return centers


def _averages(points: Floats, weights: Floats, label: NDArray[np.intp], centers: Floats) -> Floats:
    """Weighted mean of the points of each label; a center without points stays."""
    k = len(centers)
    total = np.bincount(label, weights, minlength=k)
    sums = np.stack([np.bincount(label, weights * axis, minlength=k) for axis in points.T], axis=1)
    return np.where(total[:, None] > 0, sums / np.maximum(total, 1e-300)[:, None], centers)


def squared_distances(points: Floats, centers: Floats) -> Floats:
    """Squared distances of points (m, q) to centers (k, q), shape (m, k)."""
    squares = points @ (-2 * centers.T)
    squares += np.einsum("ij,ij->i", points, points)[:, None]
    squares += np.einsum("ij,ij->i", centers, centers)
    return np.asarray(np.maximum(squares, 0.0, out=squares))
