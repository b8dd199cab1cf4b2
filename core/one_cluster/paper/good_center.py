"""GoodCenter as published: a ball about most of a cluster of known radius."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.domain import Grid
from core.draws import Draw
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.stability import StabilityHistogram
from core.mechanisms.stability_axes import StabilityAxes
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.paper.good_radius import Radius
from core.one_cluster.paper.noisy_average import AverageScales, noisy_average
from core.one_cluster.paper.weighted import Weighted
from core.rounds import Block

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_NEIGHBORS = Neighbors("replace_one")
_PROJECTION, _SHIFT, _ROTATION = range(3)  # what a public seed is used for


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
        """Dimension k of the boxes' space: the smaller of 46 ln(2 n / beta) and d.

        Where k = d, the identity map replaces the random projection, because it distorts no distance.
        """
        return min(self.dimension, math.ceil(46 * self.log(records)))

    def shifts(self, records: int) -> int:
        """How many random shifts are tried at most: the smaller of two sufficient numbers.

        A shift cuts no part off the cluster with probability .99^k. So ln(1 / beta) / .99^k shifts suffice.
        The published number, 2 n ln(1 / beta) / beta, follows from .99^k >= beta / (2 n).
        """
        enough = math.log(1 / self.beta) / 0.99 ** self.image(records)
        return math.ceil(min(enough, 2 * records * math.log(1 / self.beta) / self.beta))

    @property
    def shift(self) -> AboveThreshold:
        """Choice of the shift at epsilon' = epsilon / 4: scales 2 / epsilon' and 4 / epsilon'."""
        return AboveThreshold(
            what="fullest box", threshold_scale=8 / self.epsilon, query_scale=16 / self.epsilon
        )

    @property
    def box(self) -> StabilityHistogram:
        """Choice of the box, (epsilon / 4, delta / 4)."""
        return StabilityHistogram.of("box", self.epsilon / 4, self.delta / 4, _NEIGHBORS)

    @property
    def intervals(self) -> StabilityAxes:
        """Choice on the d rotated axes, (epsilon / (10 sqrt(d ln(8 / delta))), delta / (8 d)) each.

        Together at most (epsilon / 4, delta / 4), with a slack of delta / 8.
        """
        d = self.dimension
        epsilon = self.epsilon / (10 * math.sqrt(d * math.log(8 / self.delta)))
        what = "interval of every axis"
        return StabilityAxes.of(what, epsilon, self.delta / (8 * d), _NEIGHBORS, axes=d, slack=self.delta / 8)

    @property
    def average(self) -> AverageScales:
        """NoisyAVG, (epsilon / 4, delta / 4)."""
        return AverageScales(self.epsilon / 4, self.delta / 4)

    def draws(self) -> tuple[Draw, ...]:
        """Every draw."""
        return self.shift, self.box, self.intervals, *self.average.draws()

    def reach(self, records: int) -> float:
        """Radius of the ball that bounds the average, per r: 2700 sqrt(k ln(d n / beta))."""
        log = math.log(self.dimension * records / self.beta)
        return 2700 * math.sqrt(self.image(records) * log)

    def diameter(self, records: int) -> float:
        """Bound on the diameter of the records of one box, per r: 450 sqrt(k)."""
        return 450 * math.sqrt(self.image(records))


@dataclass(frozen=True)
class GoodCenter:
    """Find a ball that holds most records of some ball of the released radius r.

    1. AboveThreshold looks for a random shift at which some box of side 300 r holds nearly the expected
       number of records.
    2. A stability histogram chooses one of the boxes of this shift.
    3. On each axis of a random rotation, another stability histogram chooses an interval of length
       900 r sqrt(k ln(d n / beta) / d).
    4. The intersection of these intervals is the center of a bounding ball. The released center is the
       noisy average of the box's records inside the bounding ball.

    Sensitivity under `replace_one`: the count of the fullest box has sensitivity 1 and is not monotone. So
    AboveThreshold takes the scales 2 / epsilon' and 4 / epsilon' with epsilon' = epsilon / 4. The counts of
    the boxes are a histogram. The counts of the chosen box's records in the intervals of one axis are a
    histogram too. Shifts, projection and rotation are public randomness: privacy holds for any value of
    them. n is public.

    If r = 0, the cells are the single grid points, and one stability histogram suffices.

    Args:
        grid: the universe.
        target: number of records that some ball of the released radius, centered at a record, holds.
        scales: constants.
        seed: public seed of the shifts, the projection and the rotation.
    """

    grid: Grid
    target: int
    scales: CenterScales
    seed: int
    growing: ClassVar[str] = "memory in proportion to the square of the number of distinct points"
    name: str = "good_center"
    floor: None = None
    purpose: ClassVar[str] = "a box that holds most rows of a ball of that radius, and the mean of its rows"

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`."""
        return self.scales.draws()

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
        here = self._fullest(data, data.points, noise)
        if here is None:
            return NotFound()
        point, held = here
        count = self.scales.average.count.add(np.array([held.total], dtype=np.int64), noise)
        return Found(point, 0, max(0, int(count[0])))

    def _fullest(self, data: Weighted, cells: Ints, noise: Noise) -> tuple[Ints, Weighted] | None:
        """Release a cell whose count is close to the largest; return the cell and its records.

        Args:
            data: the records.
            cells: the cell of each point, shape (m, k).
            noise: where randomness comes from.
        """
        cells = np.ascontiguousarray(cells)
        number, counts = data.tally(cells)
        keys = np.empty(len(counts), dtype=object)
        keys[number] = [int.from_bytes(cell.tobytes(), "little") for cell in cells]
        best = self.scales.box.fullest(keys, counts, noise)
        if best is None:
            return None
        bytes_ = best.to_bytes(8 * cells.shape[1], "little")
        cell = np.frombuffer(bytes_, dtype=np.int64)
        return cell, data.where((cells == cell).all(axis=1))

    def _box(self, data: Weighted, side: int, noise: Noise) -> Weighted | None:
        """Records of the chosen box of `side` grid steps (steps 1 to 7)."""
        records, scales = data.total, self.scales
        image = self._image(data, scales.image(records))

        def fullest() -> Iterator[int]:
            for number in range(scales.shifts(records)):
                yield int(data.tally(self._cells(image, side, number))[1].max())

        expected = math.floor(self.target - 100 / scales.epsilon * scales.log(records))
        first = scales.shift.first(fullest(), expected, noise)
        if first is None:
            return None
        here = self._fullest(data, self._cells(image, side, first), noise)
        return None if here is None else here[1]

    def _image(self, data: Weighted, k: int) -> Floats:
        if k == self.grid.dimension:
            return data.points.astype(np.float64)
        gauss = self._random(_PROJECTION, 0).normal(size=(self.grid.dimension, k))
        return self._products(data, gauss / math.sqrt(k))

    def _products(self, data: Weighted, columns: Floats) -> Floats:
        """Inner products (m, c) of the points with columns (d, c), in integers.

        Floating-point sums may depend on the number of points. Then one record could change the cells of
        other records, which the sensitivity argument excludes.
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
        axes = axes * np.sign(np.diagonal(triangle))  # without the signs the rotation would not be uniform
        intervals = np.floor(self._products(box, axes) / length).astype(np.int64)
        found = self.scales.intervals.fullest((box.tallied(of) for of in intervals.T), noise)
        if found is None:
            return None
        return self._on_grid((np.array(found) + 0.5) * length @ axes.T)

    def _on_grid(self, point: Floats) -> Ints:
        """Nearest grid point. Apart from rounding, it is no farther from any record than `point` is."""
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
