"""GoodCenter as published: a ball about most of a cluster of known radius."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.good_radius import Radius
from core.one_cluster.noisy_average import AverageScales, noisy_average
from core.one_cluster.practical import Found, NotFound
from core.one_cluster.weighted import Weighted
from core.rounds import Block
from core.selection import above_threshold, stability_histogram, stability_threshold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_NEIGHBORS = Neighbors("replace_one")
_PROJECTION, _SHIFT, _ROTATION = range(3)  # what a public seed is used for


@dataclass(frozen=True)
class Selection:
    """One stability histogram under `replace_one` at (epsilon, delta)."""

    epsilon: float
    delta: float

    @property
    def scale(self) -> float:
        """Laplace scale 2 / epsilon: one record leaves a cell and enters another."""
        return _NEIGHBORS.moves / self.epsilon

    def choose(self, counts: Ints, noise: Noise) -> int | None:
        """Release nearly the fullest cell."""
        threshold = stability_threshold(self.epsilon, self.delta, _NEIGHBORS)
        return stability_histogram(counts, self.scale, threshold, noise)

    def needs(self, cells: int, failure: float) -> int:
        """Count at which the fullest of `cells` is released but for probability `failure`."""
        threshold = stability_threshold(self.epsilon, self.delta, _NEIGHBORS)
        return threshold + math.ceil(self.scale * math.log(cells / failure))


@dataclass(frozen=True)
class CenterScales:
    """Constants of GoodCenter at its own (epsilon, delta); Nissim, Stemmer and Vadhan 2016, Algorithm 2.

    Args:
        dimension: d.
        epsilon: what GoodCenter spends.
        delta: what GoodCenter spends.
        beta: failure probability of each of its steps.
    """

    dimension: int
    epsilon: float
    delta: float
    beta: float

    def log(self, records: int) -> float:
        """ln(2 n / beta)."""
        return math.log(2 * records / self.beta)

    def image(self, records: int) -> int:
        """Dimension k of the boxes: 46 ln(2 n / beta), or d where that is no larger.

        The identity map distorts nothing, so it serves as the projection whenever it is allowed.
        """
        return min(self.dimension, math.ceil(46 * self.log(records)))

    def shifts(self, records: int) -> int:
        """How many random shifts may be tried: 2 n ln(1 / beta) / beta, or as many as are needed.

        A shift keeps the cluster whole with probability .99^k, so ln(1 / beta) / .99^k of them suffice; the
        published number bounds this by .99^k >= beta / (2 n).
        """
        enough = math.log(1 / self.beta) / 0.99 ** self.image(records)
        return math.ceil(min(enough, 2 * records * math.log(1 / self.beta) / self.beta))

    @property
    def threshold_scale(self) -> float:
        """Laplace scale 2 / (epsilon / 4) of AboveThreshold's threshold."""
        return 8 / self.epsilon

    @property
    def query_scale(self) -> float:
        """Laplace scale 4 / (epsilon / 4) of AboveThreshold's counts, of sensitivity 1."""
        return 16 / self.epsilon

    @property
    def box(self) -> Selection:
        """Choice of the box, (epsilon / 4, delta / 4)."""
        return Selection(self.epsilon / 4, self.delta / 4)

    @property
    def interval(self) -> Selection:
        """Choice on each of the d rotated axes, (epsilon / (10 sqrt(d ln(8 / delta))), delta / (8 d))."""
        root = math.sqrt(self.dimension * math.log(8 / self.delta))
        return Selection(self.epsilon / (10 * root), self.delta / (8 * self.dimension))

    @property
    def axes_spend(self) -> tuple[float, float]:
        """What the d choices of intervals spend together, at most (epsilon / 4, delta / 4).

        Basic composition, or Theorem 4.7 with delta' = delta / 8 where that is less:
        2 d e^2 + e sqrt(2 d ln(8 / delta)) for d choices of epsilon e.
        """
        d, e, each = self.dimension, self.interval.epsilon, self.interval.delta
        advanced = 2 * d * e**2 + e * math.sqrt(2 * d * math.log(8 / self.delta))
        if d * e <= advanced:
            return d * e, d * each
        return advanced, d * each + self.delta / 8

    @property
    def average(self) -> AverageScales:
        """NoisyAVG, (epsilon / 4, delta / 4)."""
        return AverageScales(self.epsilon / 4, self.delta / 4)

    def reach(self, records: int) -> float:
        """Radius of the ball that bounds the average, per r: 2700 sqrt(k ln(d n / beta))."""
        log = math.log(self.dimension * records / self.beta)
        return 2700 * math.sqrt(self.image(records) * log)

    def diameter(self, records: int) -> float:
        """Bound on the diameter of the records of one box, per r: 450 sqrt(k)."""
        return 450 * math.sqrt(self.image(records))


@dataclass(frozen=True)
class GoodCenter:
    """Find a ball about most records of some ball of the released radius r.

    AboveThreshold looks for a random shift at which some box of side 300 r holds nearly the expected
    number; a stability histogram chooses the box; on each axis of a random rotation another one chooses
    an interval of length 900 r sqrt(k ln(d n / beta) / d); the noisy average inside a ball about their
    intersection is the center.

    `replace_one`: the fullest box's count has sensitivity 1, not monotone, so AboveThreshold takes
    2 / epsilon' and 4 / epsilon' (epsilon' = epsilon / 4). The boxes' counts, and the counts of the chosen
    box's records in the intervals of one axis, are histograms. Shifts, projection and rotation are public
    randomness: privacy holds for any value of them. n is public.

    With radius 0 the cells are the single grid points, and one stability histogram suffices.

    Args:
        grid: the universe.
        target: number of records that some ball of the released radius about a record holds.
        scales: constants.
        seed: public seed of the shifts, the projection and the rotation.
    """

    grid: Grid
    target: int
    scales: CenterScales
    seed: int
    name: str = "good_center"
    floor: None = None

    def summarize(self, block: Block, state: Radius | NotFound) -> Weighted:
        """Return the block's distinct points and their multiplicities."""
        return Weighted.of(block.points[:0] if isinstance(state, NotFound) else block.points)

    def release(self, aggregate: Weighted, state: Radius | NotFound, noise: Noise) -> Found | NotFound:
        """Release a ball about the records of the chosen box, and their noisy number."""
        if isinstance(state, NotFound):
            return state
        if state.half_steps == 0:
            return self._densest_point(aggregate, noise)
        records = aggregate.total
        box = self._box(aggregate, 150 * state.half_steps, noise)
        if box is None:
            return NotFound()
        center = self._intersection(box, state.half_steps / 2, records, noise)
        if center is None:
            return NotFound()
        return self._ball(box, center, state.half_steps / 2, records, noise)

    def _densest_point(self, data: Weighted, noise: Noise) -> Found | NotFound:
        number, counts = data.tally(data.points)
        best = self.scales.box.choose(counts, noise)
        if best is None:
            return NotFound()
        here = data.where(number == best)
        count = noise.laplace(np.array([here.total], dtype=np.int64), self.scales.average.count)
        return Found(here.points[0], 0, max(0, int(count[0])))

    def _box(self, data: Weighted, side: int, noise: Noise) -> Weighted | None:
        """Records of the chosen box of `side` grid steps (steps 1 to 7)."""
        records, scales = data.total, self.scales
        image = self._image(data, scales.image(records))

        def fullest() -> Iterator[int]:
            for number in range(scales.shifts(records)):
                yield int(data.tally(self._cells(image, side, number))[1].max())

        first = above_threshold(
            fullest(),
            math.floor(self.target - 100 / scales.epsilon * scales.log(records)),
            scales.threshold_scale,
            scales.query_scale,
            noise,
        )
        if first is None:
            return None
        number, counts = data.tally(self._cells(image, side, first))
        best = scales.box.choose(counts, noise)
        return None if best is None else data.where(number == best)

    def _image(self, data: Weighted, k: int) -> Floats:
        if k == self.grid.dimension:
            return data.points.astype(np.float64)
        gauss = self._random(_PROJECTION, 0).normal(size=(self.grid.dimension, k))
        return self._products(data, gauss / math.sqrt(k))

    def _products(self, data: Weighted, columns: Floats) -> Floats:
        """Inner products (m, c) of the points with columns (d, c), in integers.

        Floating-point sums may depend on how many points there are, and one record would move others.
        """
        bits = 59 - sum(self.grid.extents).bit_length()
        products = data.points @ np.rint(columns * 2.0**bits).astype(np.int64)
        return products.astype(np.float64) / 2.0**bits

    def _cells(self, image: Floats, side: int, number: int) -> Ints:
        shift = self._random(_SHIFT, number).uniform(0, side, size=image.shape[1])
        return np.floor((image - shift) / side).astype(np.int64)

    def _random(self, use: int, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, use, number])

    def _intersection(self, box: Weighted, r: float, records: int, noise: Noise) -> Ints | None:
        """Grid point in the middle of the intervals chosen on the rotated axes (steps 8 to 10)."""
        d = self.grid.dimension
        length = self.scales.reach(records) / 3 * r / math.sqrt(d)
        axes, triangle = np.linalg.qr(self._random(_ROTATION, 0).normal(size=(d, d)))
        axes = axes * np.sign(np.diagonal(triangle))  # without the signs it would not be uniform
        middle = np.zeros(d)
        for axis, along in zip(axes.T, self._products(box, axes).T, strict=True):
            interval = np.floor(along / length).astype(np.int64)
            number, counts = box.tally(interval[:, None])
            best = self.scales.interval.choose(counts, noise)
            if best is None:
                return None
            middle += (interval[number == best][0] + 0.5) * length * axis
        return self._on_grid(middle)

    def _on_grid(self, point: Floats) -> Ints:
        """Nearest grid point: closer to every record than `point`, but for the rounding."""
        extents = np.asarray(self.grid.extents)
        return np.rint(np.clip(point, 0, extents)).astype(np.int64)

    def _ball(self, box: Weighted, center: Ints, r: float, records: int, noise: Noise) -> Found | NotFound:
        scales, rounding = self.scales, math.sqrt(self.grid.dimension) / 2
        widest = 2 * self.grid.bounding_radius
        reach = min(math.ceil(scales.reach(records) * r), widest)
        average = noisy_average(box, center, reach, records, scales.average, scales.beta, noise)
        if average is None:
            return NotFound()
        radius = math.ceil(scales.diameter(records) * r + average.error + rounding)
        return Found(self._on_grid(center + average.mean), min(radius, widest), max(0, average.count))
