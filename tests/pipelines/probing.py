"""What draws are really asked: exact values and the scales of their noise, and what two databases' lose."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from core.draws import Additive, Draw
from core.mechanisms.a_dist import ADist
from core.mechanisms.above_threshold import AboveThreshold
from core.mechanisms.choosing import ChoiceOfKeys, Choosing
from core.mechanisms.exponential import Both, Exponential, Offered
from core.mechanisms.heavy_path import HeavyPathWalk
from core.mechanisms.partition_selection import CountThreshold, OptimalSelection, SumsThreshold
from core.mechanisms.splits import Splits
from core.mechanisms.stability import StabilityHistogram
from core.mechanisms.stability_axes import StabilityAxes
from core.mechanisms.stopping import Stopping
from core.mechanisms.within_cell import WithinCell
from core.noise import Lengths, Noise
from tests.core.seeded import SeededNoise

T = TypeVar("T")

_HUGE = 1 << 40
_QUERIES = 100  # of an AboveThreshold that are looked at


@dataclass(frozen=True)
class Asked:
    """One call for noise: exact values by key, and the scale.

    Args:
        kind: laplace, gaussian, or select for a choice; threshold and queries of an AboveThreshold; gap of an
            `ADist`; coins for numbers of units on which coins depend; exact for values that get no noise.
        values: by key; of a choice among runs of points, by first point.
        scale: of the noise.
        runs: whether a value holds up to the next key; else a missing key has the value 0.
        others: scores of a second choice that is made at once; a pair has the smaller one of its two scores.
    """

    kind: str
    values: dict[Any, int]
    scale: float
    runs: bool = False
    others: Sequence[int] = ()


@dataclass(frozen=True)
class Look:
    """One draw: what it was asked, and what it answered; `asked` is None where that is not looked at."""

    draw: Draw
    asked: list[Asked] | None
    value: Any


@dataclass
class _Exact(Noise):
    """Adds no noise but a spike at one place, chooses that place, and notes what it is asked."""

    place: int = 0
    spike: int = 0
    noting: bool = True
    calls: list[tuple[str, list[int], float]] = field(default_factory=list)

    def _added(self, kind: str, values: Any, scale: float) -> Any:
        values = np.array(values)
        if self.noting:
            self.calls.append((kind, values.ravel().tolist(), scale))
        if self.spike and values.size:
            values[self.place % values.size] += self.spike
        return values

    def laplace(self, values: Any, scale: float) -> Any:
        return self._added("laplace", values, scale)

    def gaussian(self, values: Any, scale: float) -> Any:
        return self._added("gaussian", values, scale)

    def select(self, scores: Any, scale: float) -> int:
        return self._chosen("select", scores, scale)

    def select_run(self, scores: Any, lengths: Lengths, scale: float) -> int:
        return self._chosen("run", scores, scale)

    def _chosen(self, kind: str, scores: Any, scale: float) -> int:
        if self.noting:
            self.calls.append((kind, np.asarray(scores).tolist(), scale))
        return self.place

    def below(self, bound: int) -> int:
        return 0


@dataclass
class _Coins(_Exact):
    """Draws one number of 63 bits, `place`, for every group of an `OptimalSelection`."""

    def below(self, bound: int) -> int:
        groups = (bound.bit_length() - 1) // 64
        return sum(self.place << 1 << 64 * group for group in range(groups))


@dataclass
class _Queries(_Exact):
    """Notes the threshold and the values of an AboveThreshold, none of which reaches it before the last."""

    def laplace(self, values: Any, scale: float) -> Any:
        super().laplace(values, scale)
        return np.array([_HUGE if len(self.calls) in (1, _QUERIES) else -_HUGE])


class Probe(Noise):
    """Looks at what every draw is asked, and answers as noted, or with seeded noise.

    Args:
        noted: the answers to repeat, in order; None for new ones.
        seed: of the noise.
        factor: of its scales.
    """

    def __init__(self, noted: Sequence[Look] | None = None, seed: int = 0, factor: float = 1.0) -> None:
        self._noted = None if noted is None else list(noted)
        self._inner: Noise = SeededNoise(seed, factor)
        self._now: Noise = self._inner
        self.looks: list[Look] = []

    def answer(self, draw: object, sample: Callable[[], T], unit: object = 1.0) -> T:
        assert isinstance(draw, Draw)
        asked = self._explore(draw, sample)
        self._now = self._inner
        if self._noted is None:
            value = sample()
        else:
            assert self._noted, f"one draw more: {draw}"
            before = self._noted.pop(0)
            assert before.draw == draw, f"{draw} instead of {before.draw}"
            value = before.value
        self.looks.append(Look(draw, asked, value))
        return value

    def _run(self, sample: Callable[[], Any], noise: _Exact) -> tuple[Any, _Exact]:
        self._now = noise
        return sample(), noise

    def _explore(self, draw: Draw, sample: Callable[[], Any]) -> list[Asked] | None:
        if isinstance(sample, Offered):  # `test_sections.py` has the scores of all points
            return None
        if isinstance(draw, HeavyPathWalk | Splits | Stopping):
            return None
        if isinstance(draw, OptimalSelection):
            return [Asked("coins", self._units(draw, sample), 1 / draw.epsilon)]
        if isinstance(draw, AboveThreshold):
            _, noise = self._run(sample, _Queries())
            (_, threshold, first), *queries = noise.calls
            scales = {scale for _, _, scale in queries}
            assert len(scales) <= 1
            values = {i: value for i, (_, (value,), _) in enumerate(queries)}
            return [
                Asked("threshold", {0: threshold[0]}, first),
                Asked("queries", values, scales.pop() if scales else math.inf),
            ]
        if isinstance(draw, CountThreshold | StabilityHistogram | StabilityAxes):
            return self._cells(draw, sample)
        if isinstance(draw, ADist):
            best, noise = self._run(sample, _Exact(spike=_HUGE))
            ((_, (gap,), scale),) = noise.calls
            return [Asked("gap", {best: gap}, scale)]
        if isinstance(draw, Choosing):
            assert isinstance(sample, ChoiceOfKeys)
            _, noise = self._run(sample, _Exact())
            ((_, scores, scale),) = noise.calls
            each = [pair for part in sample.parts() for pair in zip(*part, strict=True)]
            asked = {int(key): int(score) for key, score in each if score > 0}
            assert len({int(key) for key, _ in each}) == len(each), "a key is in two parts"
            assert sorted(scores[:-1]) == sorted({*asked.values()})
            return [Asked("select", {**asked, None: scores[-1]}, scale)]
        if isinstance(draw, Exponential | WithinCell):
            return self._choices(sample)
        if isinstance(draw, Additive):
            same, noise = self._run(sample, _Exact())
            if not noise.calls:
                return [Asked("exact", dict(enumerate(np.ravel(same).tolist())), 0.0)]
            return [Asked(kind, dict(enumerate(values)), scale) for kind, values, scale in noise.calls]
        return None

    def _choices(self, sample: Callable[[], Any]) -> list[Asked]:
        if isinstance(sample, Both):
            points = dict(zip(sample.starts.tolist(), sample.scores.tolist(), strict=True))
            return [Asked("select", points, sample.scale, runs=True, others=sample.others.tolist())]
        found, noise = self._run(sample, _Exact())
        calls = noise.calls
        if calls[0][0] != "run":  # of public candidates, or counts
            return [Asked(kind, dict(enumerate(values)), scale) for kind, values, scale in calls]
        places = [self._run(sample, _Exact(place, noting=False))[0] for place in range(len(calls[0][1]))]
        starts = [place[0] if isinstance(found, tuple) else place for place in places]
        return [
            Asked("select", dict(zip(starts, values, strict=True)), scale, runs=True)
            for _, values, scale in calls
        ]

    def _cells(
        self, draw: CountThreshold | StabilityHistogram | StabilityAxes, sample: Callable[[], Any]
    ) -> list[Asked]:
        found, noise = self._run(sample, _Exact(0, _HUGE))
        if isinstance(found, tuple) and isinstance(
            found[0], np.ndarray
        ):  # all cells that reach the threshold
            if not noise.calls and draw.scale and not len(found[0]):  # a part without cells draws nothing
                gaussian = isinstance(draw, CountThreshold) and draw.gaussian
                return [Asked("gaussian" if gaussian else "laplace", {}, draw.scale)]
            if not noise.calls:
                return [Asked("exact", dict(zip(*(part.tolist() for part in found), strict=True)), 0.0)]
            ((kind, values, scale),) = noise.calls
            keys = self._all_released(sample)
            if isinstance(draw, CountThreshold):
                check_selected(draw, self._run(sample, _Exact())[0][0].tolist(), keys, values)
            if isinstance(draw, SumsThreshold):
                keys = [(key, side) for key in keys for side in range(draw.sums)]
            return [Asked(kind, dict(zip(keys, values, strict=True)), scale)]
        most = max((len(values) for _, values, _ in noise.calls), default=0)
        keys_at = [self._run(sample, _Exact(place, _HUGE, noting=False))[0] for place in range(most)]
        asked = []
        for axis, (kind, values, scale) in enumerate(noise.calls):
            keys = [at[axis] if isinstance(at, tuple) else at for at in keys_at[: len(values)]]
            asked.append(Asked(kind, dict(zip(keys, values, strict=True)), scale))
        return asked

    def _units(self, draw: OptimalSelection, sample: Callable[[], Any]) -> dict[Any, int]:
        """Return how many units every group seems to have, by which numbers it is released with.

        A group of n units is released with all numbers below odds[n].
        """
        found = [self._run(sample, _Coins(odds))[0].tolist() for odds in draw.odds[:-1]]
        assert all(keys == sorted(keys) for keys in found), f"{draw} finds keys in an order of their rows"
        return dict(Counter(key for keys in found for key in keys))

    def _all_released(self, sample: Callable[[], Any]) -> list[Any]:
        class Lifted(_Exact):
            def _added(self, kind: str, values: Any, scale: float) -> Any:
                return np.asarray(values) + _HUGE

        keys, _ = self._run(sample, Lifted())[0]
        return list(keys.tolist())

    def laplace(self, values: Any, scale: float) -> Any:
        return self._now.laplace(values, scale)

    def gaussian(self, values: Any, scale: float) -> Any:
        return self._now.gaussian(values, scale)

    def select(self, scores: Any, scale: float) -> int:
        return self._now.select(scores, scale)

    def select_run(self, scores: Any, lengths: Lengths, scale: float) -> int:
        return self._now.select_run(scores, lengths, scale)

    def below(self, bound: int) -> int:
        return self._now.below(bound)


def check_selected(draw: CountThreshold, found: list[Any], keys: list[Any], values: list[int]) -> None:
    """Check that without noise those keys are found that reach the threshold, in their own order.

    An order that follows from exact numbers, or a key that is found whatever its noise, is a part of an
    answer. So neither what a draw spends nor a replay of its answers would show it.

    Args:
        draw: the selection.
        found: the keys that it releases without noise.
        keys: all keys that it may release.
        values: their exact numbers, of each key as many as it has sums.
    """
    assert keys == sorted(keys), f"{draw} finds keys in an order of their rows"
    totals = np.reshape(values, (len(keys), -1)).sum(axis=1).tolist()
    reached = [key for key, total in zip(keys, totals, strict=True) if total >= draw.threshold]
    assert found == reached, f"{draw} finds other keys than those that reach the threshold"


def changes_of(one: Asked, other: Asked) -> list[int]:
    """Return what each value changes by from one database to the other; once for pairs that agree."""
    assert one.kind == other.kind and one.scale == other.scale
    keys = one.values.keys() | other.values.keys()
    if not one.runs:
        return [one.values.get(key, 0) - other.values.get(key, 0) for key in keys]

    def at(asked: Asked) -> list[int]:
        starts = sorted(asked.values)
        return [asked.values[starts[bisect_right(starts, key) - 1]] for key in sorted(keys)]

    pairs = zip(at(one), at(other), strict=True)
    if not one.others:
        return [a - b for a, b in pairs]
    points = np.array(list(set(pairs)), dtype=np.int64)
    others = np.array(list(set(zip(one.others, other.others, strict=True))), dtype=np.int64)
    scores = np.minimum(points[:, None], others)
    return np.unique(scores[..., 0] - scores[..., 1]).tolist()


def loss(one: Look, other: Look) -> tuple[float, float]:
    """Return the epsilon and the rho that one draw really spends between two databases.

    Laplace noise and coins spend the L1 norm of the change over its scale, a choice the range of the scores'
    change over its scale, Gaussian noise half the square of the L2 norm over its scale.
    """
    assert one.asked is not None and other.asked is not None
    assert len(one.asked) == len(other.asked), one.draw
    epsilon = rho = 0.0
    for mine, theirs in zip(one.asked, other.asked, strict=True):
        if mine.kind == "gap":
            epsilon += _gap(mine, theirs)
            continue
        moved = changes_of(mine, theirs) or [0]
        if mine.kind in ("exact", "threshold"):
            assert not any(moved), f"{one.draw} releases what differs without noise"
        elif mine.kind in ("laplace", "coins"):
            epsilon += sum(map(abs, moved)) / mine.scale
        elif mine.kind == "gaussian":
            rho += sum((change / mine.scale) ** 2 for change in moved) / 2
        elif mine.kind == "select":
            epsilon += (max(moved) - min(moved)) / mine.scale
        else:
            assert mine.values.keys() == theirs.values.keys(), f"{one.draw} sees other queries"
            most, mixed = max(map(abs, moved)), min(moved) < 0 < max(moved)
            epsilon += most / one.asked[0].scale + (2 if mixed else 1) * most / mine.scale
    return epsilon, rho


def _gap(one: Asked, other: Asked) -> float:
    """Return what the best candidate's lead over the second spends, where scores move by 1."""
    ((best, gap),), ((second, theirs),) = one.values.items(), other.values.items()
    return (abs(gap - theirs) if best == second else gap + theirs) / one.scale


def groups_alone(one: Look, other: Look) -> int:
    """Return how many groups one of two databases has and the other lacks, at most."""
    sums = isinstance(one.draw, SumsThreshold)  # of which a group has several
    ours, theirs = (
        {key[0] if sums else key for asked in look.asked or () for key in asked.values}
        for look in (one, other)
    )
    return max(len(ours - theirs), len(theirs - ours))


def born(one: Look, other: Look) -> list[int]:
    """Return the values of cells and candidates that only one of two databases has: they cost delta."""
    assert one.asked is not None and other.asked is not None
    if isinstance(one.draw, SumsThreshold):  # the sums of a group together are its units
        totals, unit = (Counter[Any](), Counter[Any]()), one.draw.extent
        for total, look in zip(totals, (one.asked[0], other.asked[0]), strict=True):
            for (key, _), value in look.values.items():
                total[key] += value
        alone = totals[0].keys() ^ totals[1].keys()
        return [-(-(totals[0][key] + totals[1][key]) // unit) for key in alone]
    return [
        a.values.get(key, 0) + b.values.get(key, 0)
        for a, b in zip(one.asked, other.asked, strict=True)
        for key in a.values.keys() ^ b.values.keys()
        if not a.runs
    ]
