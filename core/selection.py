"""Private selection on integer scores: the first above a threshold, the best of many, the fullest cell."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.neighbors import Neighbors
from core.noise import Noise

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ThresholdScales:
    """Laplace scales of AboveThreshold.

    Args:
        threshold: scale of the noise added once to the threshold.
        query: scale of the noise added afresh to every query.
    """

    threshold: float
    query: float

    @classmethod
    def of(
        cls, epsilon: float, neighbors: Neighbors, *, monotone: bool, sensitivity: int = 1
    ) -> "ThresholdScales":
        """Split `epsilon` so that threshold plus query noise has the smallest variance.

        With epsilon_1 for the threshold and epsilon_2 for the queries the variance is proportional to
        1 / epsilon_1^2 + s^2 / epsilon_2^2 (s as in `above_threshold`): epsilon_2 = s^(2/3) epsilon_1.

        Args:
            epsilon: what AboveThreshold spends.
            neighbors: the relation.
            monotone: whether adding a record moves all queries the same way; only counts under
                `add_or_remove_one`, as a replacement may move them both ways.
            sensitivity: largest change of a query between neighbors.
        """
        s = 1 if monotone and neighbors.name == "add_or_remove_one" else 2
        first = epsilon / (1 + s ** (2 / 3))
        return cls(sensitivity / first, s * sensitivity / (epsilon - first))


def above_threshold(
    values: Iterable[int], threshold: int, scale_threshold: float, scale_query: float, noise: Noise
) -> int | None:
    """Release the index of the first value whose noisy version reaches the noisy threshold.

    With values of sensitivity D, (epsilon_1 + epsilon_2)-private if scale_threshold >= D / epsilon_1 and
    scale_query >= s D / epsilon_2, where s = 1 if the values are monotone and the neighbors
    `add_or_remove_one`, and s = 2 otherwise (Lyu, Su and Li 2017).

    Proof, for integers too: fix all query noise but that of the released index i, and move the
    threshold noise by +D, which costs D / scale_threshold. A value that stayed below stays below, as it
    rises by at most D; value i must gain D against the threshold and may itself have lost D, hence 2D
    from its own noise. If all values can only have risen, i loses nothing and needs D; if all can only
    have fallen, the threshold does not move at all and i needs D.

    Args:
        values: one after the other, read only as far as needed.
        threshold: value to reach.
        scale_threshold: Laplace scale of the threshold, drawn once.
        scale_query: Laplace scale of each value.
        noise: where randomness comes from.

    Returns:
        The index, or None where no value reaches.
    """
    bar = _laplace(threshold, scale_threshold, noise)
    for index, value in enumerate(values):
        if _laplace(value, scale_query, noise) >= bar:
            return index
    return None


def _laplace(value: int, scale: float, noise: Noise) -> int:
    return int(noise.laplace(np.array([value], dtype=np.int64), scale)[0])


def above_threshold_error(scale_threshold: float, scale_query: float, queries: int, failure: float) -> int:
    """Bound the error alpha of AboveThreshold on at most `queries` integer values.

    With probability 1 - failure a released value is at least threshold - alpha, and every value passed
    over at most threshold + alpha. Integer noise obeys Pr[|Z| > a] <= exp(-a / scale) for integers a; half
    of `failure` goes to the threshold and half to all queries: scale_threshold ln(2 / failure) +
    scale_query ln(2 queries / failure), each rounded up.
    """
    return math.ceil(scale_threshold * math.log(2 / failure)) + math.ceil(
        scale_query * math.log(2 * queries / failure)
    )


def choose(scores: Ints, bar: int, scale: float, noise: Noise) -> int | None:
    """Choose a key of nearly the largest positive score, or nothing: the choosing mechanism.

    The exponential mechanism over the keys of positive score and one more candidate, "nothing", of
    constant score `bar`. Let a record touch at most k keys, and adding one raise each touched score by
    at most 1. With scale = 1 / epsilon this is (epsilon, delta)-private for `add_or_remove_one`, with

        delta = k / (k + exp(epsilon (bar - 1)))  <=  k exp(-epsilon (bar - 1)),

    and that delta is reached: by no candidate before, and k of score 1 after. By group privacy it is
    (2 epsilon, (1 + e^epsilon) delta)-private for `replace_one`.

    Proof. Let a record be added. Let w <= w' be the weights exp(epsilon score) of the old candidates
    and of "nothing" before and after, w' <= e^epsilon w, and Z their sum before. The new candidates,
    j <= k of them, have score 1 and together weigh j e^epsilon. Put
    y = j e^epsilon / Z <= k exp(-epsilon (bar - 1)).

    - After against before: an old candidate's probability grows by at most e^epsilon, as Z does not
      shrink. The new ones together have at most j e^epsilon / (Z + j e^epsilon) = y / (1 + y).
    - Before against after: let a be the probability before of a set T of old candidates. Afterwards it
      is least if T keeps its weight and all others grow: a / (a + e^epsilon (1 - a) + y), so
      a - e^epsilon Pr'[T] <= a - a e^epsilon / (e^epsilon + y) <= y / (e^epsilon + y) <= y / (1 + y).

    Utility: with largest score M and at most m candidates, "nothing" wins with probability at most
    failure if M >= bar + scale ln(1 / failure), and the chosen score is at least
    M - scale ln(m / failure) but for probability failure.

    Args:
        scores: shape (m,); keys that no record touches need not be listed.
        bar: score of "nothing", from `bar_for`.
        scale: Gumbel scale.
        noise: where randomness comes from.

    Returns:
        Index into `scores`, or None.
    """
    candidates = np.flatnonzero(scores > 0)
    winner = noise.select(np.append(scores[candidates], bar), scale)
    return None if winner == len(candidates) else int(candidates[winner])


def bar_for(k: int, epsilon: float, delta: float) -> int:
    """Smallest bar at which `choose` with scale 1 / epsilon is (epsilon, delta)-private.

    k / (k + exp(epsilon (bar - 1))) <= delta, so bar >= 1 + ln(k (1 - delta) / delta) / epsilon.
    A delta of 1/2 or more is taken as 1/2.

    Args:
        k: most keys that one record touches.
        epsilon: pure part, for `add_or_remove_one`.
        delta: additive part, above 0.
    """
    delta = min(delta, 0.5)
    return 1 + math.ceil(math.log(k * (1 - delta) / delta) / epsilon)


def stability_histogram(counts: Ints, scale: float, threshold: int, noise: Noise) -> int | None:
    """Choose nearly the fullest of disjoint cells: Laplace noise on each count, argmax from a threshold up.

    (epsilon, delta)-private with scale = moves / epsilon (`Neighbors.moves`; the L1 sensitivity of a
    histogram) and `stability_threshold`. With largest count M among at most m cells of positive count,
    b = ceil(scale ln(m / failure)): but for probability failure, a cell is found if M >= threshold + b, and
    holds at least M - 2 b.

    Args:
        counts: shape (m,); empty cells count as absent.
        scale: Laplace scale.
        threshold: from `stability_threshold`.
        noise: where randomness comes from.

    Returns:
        Index into `counts`, or None.
    """
    cells = np.flatnonzero(counts > 0)
    if not len(cells):
        return None
    noisy = noise.laplace(counts[cells], scale)
    best = int(np.argmax(noisy))
    return int(cells[best]) if noisy[best] >= threshold else None


def stability_threshold(epsilon: float, delta: float, neighbors: Neighbors) -> int:
    """Smallest threshold at which `stability_histogram` is (epsilon, delta)-private; delta is then exact.

    A cell that only the changed record occupies is released with probability
    Pr[1 + Z >= threshold] = a^(threshold - 1) / (1 + a), a = exp(-epsilon / moves), which must be at most
    delta; all other cells cost epsilon. Under `replace_one` one cell may vanish and another appear: what
    releases the first is impossible after, what releases the second impossible before, and both events
    have that probability, so delta does not double (Korolova et al. 2009; Vadhan 2017).

    Args:
        epsilon: pure part.
        delta: additive part, in (0, 1/2).
        neighbors: the relation.
    """
    rate = epsilon / neighbors.moves
    return 1 + max(0, math.ceil(math.log(1 / (delta * (1 + math.exp(-rate)))) / rate))


def doubling_scale(epsilon: float) -> tuple[float, int]:
    """Gumbel scale of at least 2 / epsilon that is a whole number of scores per doubling.

    Returns:
        The scale g / ln 2 and the integer g: g scores are worth a factor of exactly two.
    """
    per_doubling = math.ceil(2 * math.log(2) / epsilon)
    return per_doubling / math.log(2), per_doubling


def select_in_runs(scores: Ints, lengths: Ints, epsilon: float, noise: Noise) -> tuple[int, int]:
    """Choose one of sum(lengths) candidates that come in runs of equal score: exponential mechanism.

    epsilon-private for scores of sensitivity 1 under either relation, even though the runs depend on the
    data: a candidate's probability depends only on the scores, Pr[f] proportional to exp(score(f) / scale)
    with scale = g / ln 2 >= 2 / epsilon. A run is cut into pieces of 2^b candidates, and a piece competes
    with score + b g, which is 2^b times the weight (base-2 exponential mechanism: Ilvento 2020), up to
    the rounding of ln 2 to a double; inside the piece fair coins decide.

    With failure, the chosen score is at least the largest minus scale ln(candidates / failure).

    Args:
        scores: shape (m,), m >= 1.
        lengths: shape (m,), all positive.
        epsilon: what is spent.
        noise: where randomness comes from.

    Returns:
        Index of the run and position inside it.
    """
    scale, per_doubling = doubling_scale(epsilon)
    longest = int(lengths.max()).bit_length()
    present = (lengths[:, None] >> np.arange(longest)) & 1 > 0
    run, bits = np.nonzero(present)
    piece = noise.select(scores[run] + bits * per_doubling, scale)
    chosen, bit = int(run[piece]), int(bits[piece])
    start = int(lengths[chosen]) & ((1 << bit) - 1)
    return chosen, start + sum(_coin(noise) << b for b in range(bit))


def _coin(noise: Noise) -> int:
    return noise.select(np.zeros(2, dtype=np.int64), 1.0)
