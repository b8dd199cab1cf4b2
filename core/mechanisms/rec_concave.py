"""RecConcave: privately find a point of high quasi-concave quality in a huge ordered range."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.draws import Draw
from core.mechanisms.a_dist import ADist
from core.mechanisms.exponential import Exponential
from core.noise import Noise

Ints = NDArray[np.int64]

_SMALL = 32  # a range up to here is searched by the exponential mechanism


@dataclass(frozen=True)
class Steps:
    """A step function on 0, ..., last: `values[i]` from `starts[i]` up to the next start.

    A range of 2^40 solutions costs only as much as its k steps (Nissim, Stemmer and Vadhan, Remark 4.4).

    Args:
        starts: shape (k,), int64, ascending from 0.
        values: shape (k,), int64.
        last: end of the range, included.
    """

    starts: Ints
    values: Ints
    last: int

    @property
    def ends(self) -> Ints:
        """One past the last point of each step, shape (k,)."""
        return np.append(self.starts[1:], self.last + 1)

    def merged(self) -> "Steps":
        """Return the same function with neighboring steps of equal value joined."""
        new = np.append(True, self.values[1:] != self.values[:-1])
        return Steps(self.starts[new], self.values[new], self.last)

    def at(self, points: Ints) -> Ints:
        """Return the values at `points`, each in 0, ..., last."""
        return self.values[np.searchsorted(self.starts, points, side="right") - 1]

    def extended(self, last: int, value: int) -> "Steps":
        """Return the function with `value` from its end up to the new `last`."""
        if last == self.last:
            return self
        return Steps(np.append(self.starts, self.last + 1), np.append(self.values, value), last)

    def window_minima(self, lengths: list[int]) -> list[int]:
        """Return for each length the largest m such that some window of that length stays at or above m.

        Each step is the minimum of one widest window. All windows that are at least as long as a length serve
        it. One pass with a stack of rising steps finds them in O(k log k).
        """
        windows: list[tuple[int, int]] = []
        stack: list[tuple[int, int]] = []
        for start, value in zip(self.starts.tolist(), self.values.tolist(), strict=True):
            begin = start
            while stack and stack[-1][1] >= value:
                begin, higher = stack.pop()
                windows.append((start - begin, higher))
            stack.append((begin, value))
        windows.extend((self.last + 1 - begin, value) for begin, value in stack)
        width, minimum = np.array(windows, dtype=np.int64).T
        order = np.argsort(width)
        best = np.maximum.accumulate(minimum[order][::-1])[::-1]
        return [int(b) for b in best[np.searchsorted(width[order], lengths)]]

    def within(self, intervals: list[tuple[int, int]]) -> tuple[Ints, Ints, Ints]:
        """Return starts, lengths and values of the parts of the steps in disjoint intervals [begin, end)."""
        low = np.concatenate([np.maximum(self.starts, begin) for begin, _ in intervals])
        high = np.concatenate([np.minimum(self.ends, end) for _, end in intervals])
        kept = high > low
        return low[kept], (high - low)[kept], np.tile(self.values, len(intervals))[kept]


@dataclass(frozen=True)
class Search:
    """The draws inside RecConcave.

    Args:
        lead: releases a block; drawn twice a level.
        quality: chooses a point; drawn once a level, and once at the end.
    """

    lead: ADist
    quality: Exponential

    @classmethod
    def of(cls, epsilon: float, delta: float, levels: int) -> "Search":
        """Return draws that spend epsilon each; those by A_dist also spend delta each."""
        return cls(
            ADist.of("leading block", epsilon, delta, times=2 * levels),
            Exponential.of("quality", epsilon, 2, times=levels + 1),
        )

    def draws(self) -> tuple[Draw, ...]:
        """Return every draw."""
        return (self.lead, self.quality) if self.lead.times else (self.quality,)


def log_star(x: float) -> int:
    """Return how often log2 must be applied to x to get to 1 or below."""
    times = 0
    while x > 1:
        x, times = math.log2(x), times + 1
    return times


def levels(last: int, depth: int) -> int:
    """Return how often `rec_concave` calls itself on 0, ..., last; that is public."""
    count = 0
    while depth > 1 and last > _SMALL:
        last, depth, count = _doublings(last), depth - 1, count + 1
    return count


def _doublings(last: int) -> int:
    return (last - 1).bit_length()


def quality_promise(solutions: float, alpha: float, epsilon: float, delta: float, failure: float) -> float:
    """Return the quality from which on RecConcave is proved to succeed.

    8^N 36 N / (alpha epsilon) ln(12 N / (failure delta)) with N = log* of the number of solutions
    (Beimel, Nissim and Stemmer 2013; Nissim, Stemmer and Vadhan 2016, Theorem 4.3).
    """
    n = log_star(solutions)
    return float(8**n) * 36 * n / (alpha * epsilon) * math.log(12 * n / (failure * delta))


def rec_concave(
    quality: Steps, promise: int, alpha: float, search: Search, depth: int, noise: Noise
) -> int | None:
    """Find a point of quality at least (1 - alpha) promise, if some point has quality `promise`.

    Beimel, Nissim and Stemmer 2013, for a quality of sensitivity 1 that is quasi-concave on every
    database.
    1. The recursion finds the length 2^j to which the region of high quality extends.
    2. The range is cut into blocks of 8 times that length, in two families, one shifted by half a block. In
       one of the families some block then holds the whole region.
    3. A_dist releases the best block of each family.
    4. The exponential mechanism chooses a point of these blocks.

    Privacy.
    - Let L(j) be the best minimum over windows of length 2^j. The inner quality is
      min(L(j) - (1 - alpha) promise, promise - L(j + 1)). Both are maxima and minima of the quality plus
      constants, so they have sensitivity 1. The largest quality in a block has sensitivity 1 for the same
      reason.
    - There are `levels` calls, each with two A_dist and one exponential mechanism, and one exponential
      mechanism at the end. They compose adaptively to ((3 levels + 1) epsilon, 2 levels delta).

    Args:
        quality: the step function.
        promise: quality that some point has; where none has it, success is not likely.
        alpha: part of the promise that may be lost.
        search: the draws.
        depth: bound on the recursion, log* of the number of solutions.
        noise: where randomness comes from.

    Returns:
        A point of the range, or None where no block led clearly.
    """
    if depth <= 1 or quality.last <= _SMALL:
        return _choose(quality, [(0, quality.last + 1)], search, noise)
    doublings = _doublings(quality.last)
    extended = quality.extended(1 << doublings, min(0, int(quality.values[-1])))
    minima = extended.window_minima([1 << j for j in range(doublings + 1)])
    minima.append(min(0, minima[-1]))
    bar = math.ceil((1 - alpha) * promise)
    inner = [min(minima[j] - bar, promise - minima[j + 1]) for j in range(doublings + 1)]
    scale = Steps(np.arange(doublings + 1), np.array(inner, dtype=np.int64), doublings)
    found = rec_concave(scale, math.floor(alpha * promise / 2), 0.25, search, depth - 1, noise)
    if found is None:
        return None
    block = 8 << found
    families = [_leading_block(extended, block, shift, search, noise) for shift in (0, block // 2)]
    blocks = [b for b in families if b is not None]
    if not blocks:
        return None
    chosen = _choose(extended, _joined(blocks), search, noise)
    return min(chosen, quality.last)


def _leading_block(
    quality: Steps, length: int, shift: int, search: Search, noise: Noise
) -> tuple[int, int] | None:
    """Release the block [begin, end) of largest quality by A_dist; the first block ends at length - shift."""
    first = (quality.starts + shift) // length
    last = (quality.ends - 1 + shift) // length
    best: int | None = 0
    if (quality.last + shift) // length > 0:  # public: otherwise there is one block
        top = int(np.argmax(quality.values))
        others = quality.values[(first != first[top]) | (last != first[top])]
        best = search.lead.leader(int(first[top]), int(quality.values[top] - others.max()), noise)
    if best is None:
        return None
    begin = max(0, best * length - shift)
    return begin, min((best + 1) * length - shift, quality.last + 1)


def _joined(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    intervals = sorted(intervals)
    if len(intervals) == 2 and intervals[1][0] <= intervals[0][1]:
        return [(intervals[0][0], max(intervals[0][1], intervals[1][1]))]
    return intervals


def _choose(quality: Steps, intervals: list[tuple[int, int]], search: Search, noise: Noise) -> int:
    return search.quality.point(*quality.within(intervals), noise)
