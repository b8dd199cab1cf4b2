"""The center of attention: the center of a small ball that holds a majority of the blocks' answers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from core.domain import Points
from core.draws import Charged, Draw
from core.mechanisms.admissible import Admissible
from core.mechanisms.calibrate_noise import calibrate_noise
from core.mechanisms.smooth_bound import smooth_bound
from core.noise import Noise
from core.sample_and_aggregate.aggregator import TYPICAL_SPREAD, Aggregator, Expected, vanishing
from core.sample_and_aggregate.found import Stable
from core.sample_and_aggregate.median import about_median
from core.sample_and_aggregate.outputs import Aggregation
from core.task import Accuracy
from core.tightness import Tightness

Ints = NDArray[np.int64]

_DISTANCES = 1 << 22  # distances held at a time
_EVEN = 0.4  # measured error, in widths of an axis, where answers lie evenly over it
_VANISHED = 12.0  # e^-12 of the domain is negligible


def majority(answers: int) -> int:
    """Return t0 = floor((m + 1) / 2) + 1 for m answers.

    Any two sets of t0 of the m answers share at least two. So if one answer changes, a set of t0 answers
    before and a set of t0 answers after share at least one answer that did not change.
    """
    return (answers + 1) // 2 + 1


def attention(points: Points, diameter: int) -> tuple[Ints, Ints]:
    """Find the center of attention, and bounds A(0), A(1), ... of its local sensitivity within k changes.

    Distances are L1, in grid steps. Let r_i(t) be the distance of answer i to its t-th nearest answer, where
    the nearest is i itself. Let rho_j(t) be the j-th smallest of all r_i(t). The center is the answer of
    radius rho_1(t0), and

        A(k) = min(diameter, 2 rho_(k+2)(t0 + k + 1)).

    A(k) is the diameter where there are fewer than t0 + k + 1 answers.

    Proof. Let z' differ from z in one answer.

    1. Take the j + 1 answers with the smallest r(t + 1) in z. At least j of them are answers of z' too.
    2. Each ball about one of these that holds t + 1 answers of z holds at least t answers of z'. So
       rho_j(t) in z' is at most rho_(j+1)(t + 1) in z.
    3. Step 2 with j = k + 2 and t = t0 + k + 1 gives A(k)(z') <= A(k + 1)(z).
    4. Step 2 with j = 1 and t = t0 bounds the radius about the center of z' by rho_2(t0 + 1) of z. The
       radius about the center of z, rho_1(t0), is no larger.
    5. The balls of these radii about both centers hold t0 answers each, so they share an unchanged answer
       (`majority`). So the center moves by at most 2 rho_2(t0 + 1) = A(0).

    On a line the center may be any grid point. It is the middle of the shortest interval that holds t0
    answers. rho_j(t) is, for every j, half the length of the shortest interval that holds t answers, rounded
    up. The same proof holds.

    Source: Nissim, Raskhodnikova and Smith 2007, Section 5, with centers at answers.

    Args:
        points: shape (m, d), m >= 3.
        diameter: L1 diameter of the universe.

    Returns:
        Center (d,), and A(k) for all k with t0 + k + 1 <= m.
    """
    t0, answers = majority(len(points)), len(points)
    if points.shape[1] == 1:
        line = np.sort(points[:, 0])
        widths = [line[t - 1 :] - line[: answers - t + 1] for t in range(t0, answers + 1)]
        start = int(np.argmin(widths[0]))
        center = np.array([(line[start] + line[start + t0 - 1]) // 2])
        radii = np.array([(int(width.min()) + 1) // 2 for width in widths[1:]], dtype=np.int64)
        return center, np.minimum(2 * radii, diameter)
    nearest = np.empty((answers, answers - t0 + 1), dtype=np.int64)
    chunk = max(1, _DISTANCES // answers)
    for first in range(0, answers, chunk):
        some = slice(first, first + chunk)
        distances = np.zeros((len(points[some]), answers), dtype=np.int64)
        for axis in points.T:
            distances += np.abs(axis[some, None] - axis[None, :])
        distances.sort(axis=1)
        nearest[some] = distances[:, t0 - 1 :]
    center = points[int(np.argmin(nearest[:, 0]))]
    radii = np.array(
        [np.partition(nearest[:, k + 1], k + 1)[k + 1] for k in range(answers - t0)], dtype=np.int64
    )
    return center, np.minimum(2 * radii, diameter)


@dataclass(frozen=True, kw_only=True)
class CenterOfAttention(Aggregation):
    """Release the center of attention, with noise on each axis by the center's smooth L1 sensitivity.

    Args:
        noise: of all axes.
    """

    purpose: ClassVar[str] = (
        "the center of a small ball that holds most of the blocks' answers, and how far from it they are"
    )
    noise: Admissible

    def value_draws(self) -> tuple[Draw, ...]:
        """See `Aggregation.value_draws`."""
        return (self.noise,)

    @property
    def diameter(self) -> int:
        """L1 diameter of the universe, grid steps."""
        return sum(self.grid.extents)

    def aggregate(self, points: Points, noise: Noise) -> Stable:
        """Release the center and the radius about it."""
        center, local = attention(points, self.diameter)
        moved = self.noise.add(center.tolist(), self.sensitivity(local), noise)
        ends = zip(moved, self.grid.extents, strict=True)
        value = np.array([min(max(at, 0), extent) for at, extent in ends], dtype=np.int64)
        return Stable(value, *about_median(self.radius, points, value, noise))

    def sensitivity(self, local: Ints) -> float:
        """Compute the smooth sensitivity from the local ones, grid steps."""
        within = local.tolist()
        return smooth_bound(
            lambda k, _: within[k] if k < len(within) else self.diameter, self.diameter, self.noise.beta
        )


class CenterOfAnswers(Aggregator):
    """The center of attention. It stays near the stable answers where these are a clear majority."""

    name: ClassVar[str] = "center_of_attention"
    of_errors: ClassVar[Tightness] = Tightness(
        "The promised errors allow for a center that moves through the whole universe once the stable "
        "answers lose their majority. Where the other answers scatter, it stays near, and errors are many "
        "times smaller.",
        reached=False,
    )

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`."""
        return (self._round(share),)

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        Let the stable answers be within D of a point c on each of d axes. In L1 each of them is within d D of
        c, and a ball of radius 2 d D about any of them holds them all. The ball about the center has no
        larger radius and holds a stable answer, because it holds a majority. So the center is within 3 d D of
        c. `attention` gives A(k) <= 4 d D for all k below `_spare(stable)`.
        """
        round_, grid = self._round(share), self.setting.grid
        parts = [
            vanishing(round_.noise, self._spare(self.stable), self._failure, round_.diameter / extent)
            for extent in grid.extents
        ]
        if max(parts) >= 1:
            return self.promised(share, None)
        spread_factor = grid.dimension * (3 + 4 * round_.noise.scale(1.0) * round_.noise.tail(self._failure))
        widest = max(round_.diameter / extent for extent in grid.extents)
        spread = spread_factor * TYPICAL_SPREAD
        odds = self.usual_failure
        expected = Expected(
            agreeing=vanishing(round_.noise, self._spare(self.stable), odds, widest) + spread,
            even=_EVEN,
            divided=vanishing(round_.noise, self._spare(self.divided), odds, widest) + spread,
        )
        return self.promised(share, parts, spread_factor, expected=expected)

    def _spare(self, agreeing: int) -> int:
        """How many answers may change before the center can leave those that agree."""
        return agreeing - majority(self.setting.params.blocks)

    @property
    def _failure(self) -> float:
        return self.value_failure / self.setting.grid.dimension

    def _round(self, share: float) -> CenterOfAttention:
        one = self.per_answer(share)
        # beta is so large that e^(-beta spare) times the domain is negligible, and hardly larger. A small
        # beta would do for the rest, because the radius that holds a majority grows slowly with k.
        doubling = max(1.0, self._spare(self.stable) / _VANISHED)
        noise = calibrate_noise(
            "center of attention",
            "auto",
            self.value_share * one.epsilon,
            one.delta,
            self._failure,
            doubling,
            axes=self.setting.grid.dimension,
            changes=self.changes,
        )
        return CenterOfAttention(**self.common(share), noise=noise)
