"""Tails of discrete Laplace noise and of its sums, from which plans derive the errors they promise."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RATES, _FASTEST = 80, 300.0  # rates tried in a Chernoff bound, and the largest; each is sound
_TINY = 1e-100  # least variance of any noise: that of a tiny scale would underflow, and is divided by
_FINENESS, _AMOUNTS = (
    16,
    200,
)  # variances are rounded up to such parts of the noise's, or of the largest one's
_SPREADS = 60  # scales beyond which noise has no weight in float64
_MOST_REACH = 1 << 18  # most integers of an exact law


def variance(scale: float) -> float:
    """Return the variance 2 a / (1 - a)^2 of discrete Laplace noise, a = exp(-1 / scale); 0 for no noise."""
    return 0.0 if scale == 0 else max(_TINY, 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2)


def largest_of(draws: int, scale: float, failure: float) -> int:
    """Return the smallest m such that `draws` independent |Z| are all at most m, but for `failure`.

    It is exact: Pr[|Z| > m] = 2 a^(m + 1) / (1 + a) with a = exp(-1 / scale).
    """
    if scale == 0 or draws == 0:
        return 0
    each = -math.expm1(math.log1p(-failure) / draws)
    tail = math.log(each * (1 + math.exp(-1 / scale)) / 2)
    return max(0, math.ceil(-tail * scale - 1))


def tail_of_sum(noises: int, scale: float, least: Floats) -> Floats:
    """Return Pr[S >= m] of the sum S of some independent discrete Laplace noises, for whole m >= 0.

    It is exact. Let a = exp(-1 / scale), b = 1 - a, and k the number of noises. Each of them is a difference
    of two geometric variables, so S = X - Y, where both count the failures before the k-th success, of
    probability b. Then Pr[X >= n] = sum over i < k of C(n + k - 1, i) b^i a^(n + k - 1 - i). For n = m + Y,
    C(m + k - 1 + Y, i) is the sum over j <= i of C(m + k - 1, i - j) C(Y, j) (Vandermonde), and
    E[a^Y C(Y, j)] = C(k + j - 1, j) (a^2 / (b (1 + a)))^j / (1 + a)^k. So

        Pr[S >= m] = a^m / (1 + a)^k  sum over j <= i < k of
                     b^(i - j) C(m + k - 1, i - j) C(k + j - 1, j) (a^2 / (1 + a))^j a^(k - 1 - i),

    of which no term is below 0.

    Args:
        noises: k.
        scale: of each noise.
        least: m, any shape.
    """
    a, b = math.exp(-1 / scale), -math.expm1(-1 / scale)
    found = np.zeros(np.shape(least))
    for i in range(noises):
        for j in range(i + 1):
            ways = np.ones(np.shape(least))
            for place in range(i - j):
                ways = ways * b * (least + noises - 1 - place) / (place + 1)
            found += ways * math.comb(noises + j - 1, j) * (a * a / (1 + a)) ** j * a ** (noises - 1 - i)
    return np.asarray(np.exp(-least / scale) * found / (1 + a) ** noises)


def largest_of_sums(draws: int, noises: int, scale: float, failure: float) -> int:
    """Return the smallest m such that `draws` independent |S| are all at most m, but for `failure`.

    Args:
        draws: how many sums there are.
        noises: number of noises of each sum S.
        scale: of each noise.
        failure: probability that one of the sums is larger.
    """
    return excess_of_sum(noises, scale, -math.expm1(math.log1p(-failure) / draws) / 2)


def excess_of_sum(noises: int, scale: float, failure: float) -> int:
    """Return the smallest m >= 0 such that a sum of noises exceeds m with probability at most `failure`."""

    def serves(most: int) -> bool:
        return float(tail_of_sum(noises, scale, np.array(most + 1.0))) <= failure

    low, high = -1, 1
    while not serves(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high


def rounded_deviation(noises: int, scale: float, unit: int) -> float:
    """Return the standard deviation of S / unit, rounded to a whole number; with halves away from 0.

    S is a sum of some noises of one scale. It is exact but for numbers so large that rounding is less than a
    millionth of it, since E[R^2] = sum over j >= 1 of (2 j - 1) Pr[|R| >= j].
    """
    terms = _SPREADS * scale / unit
    if terms > _MOST_REACH:
        return math.sqrt(noises * variance(scale)) / unit
    j = np.arange(1.0, math.ceil(terms) + 2)
    tails = 2 * tail_of_sum(noises, scale, np.ceil((j - 0.5) * unit))
    return math.sqrt(float(((2 * j - 1) * tails).sum()))


def excess(scale: float, failure: float) -> int:
    """Return the smallest m >= 0 such that Z exceeds m with probability at most `failure`.

    It is exact: Pr[Z > m] = a^(m + 1) / (1 + a) with a = exp(-1 / scale).
    """
    if scale == 0:
        return 0
    return max(0, math.ceil(-math.log(failure * (1 + math.exp(-1 / scale))) * scale - 1))


def largest_sum_of_two(first: float, second: float, failure: float) -> float:
    """Return a y such that the sum of two independent exponential variables exceeds y with `failure` at most.

    With means a > b, Pr[sum > y] = (a e^(-y / a) - b e^(-y / b)) / (a - b). Means that are almost equal are
    taken apart, by making the larger one larger.

    Args:
        first: mean of one variable, above 0.
        second: mean of the other, above 0.
        failure: above 0 and below 1.
    """
    b = min(first, second)
    a = max(first, second, b * (1 + 1e-3))

    def fails(y: float) -> float:
        return (a * math.exp(-y / a) - b * math.exp(-y / b)) / (a - b)

    low, high = 0.0, -2 * a * math.log(failure / 2)  # either exceeds half of `high` with failure / 2 at most
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fails(middle) <= failure else (middle, high)
    return high


def largest_weighted_sum_of_two(scales: Sequence[float], failure: float) -> float:
    """Return a bound on a weighted sum of two discrete Laplace noises, but for probability `failure`.

    Pr[|X + Y| > t] = (a^2 exp(-t / a) - b^2 exp(-t / b)) / (a^2 - b^2) for continuous noise of scales a, b.
    Discrete noise is symmetric, unimodal and at most 1 larger than continuous noise of its scale; the caller
    adds this.

    Args:
        scales: of both noises, times their weights; 0 where there is none.
        failure: probability that the bound is exceeded.
    """
    b, a = sorted(scales)
    if a == 0:
        return 0.0
    if b > 0.999 * a:  # scales that are nearly equal: the limit of the formula, with the larger one
        b = 0.999 * a

    def exceeded(t: float) -> float:
        small = 0.0 if b == 0 else b * b * math.exp(-t / b)
        return (a * a * math.exp(-t / a) - small) / (a * a - b * b)

    low, high = 0.0, a
    while exceeded(high) > failure:
        low, high = high, 2 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if exceeded(middle) <= failure else (middle, high)
    return high / 0.999


def some_exceeds(draws: int, scale: float, margin: int, base_scale: float) -> float:
    """Return a bound on the probability that some of `draws` Z_i exceeds Z by more than `margin`, at least 0.

    Z has `base_scale`, and each Z_i has `scale`. Given Z = z, the probability is at most
    min(1, draws Pr[Z_i > margin + z]). The sum over z of this bound is exact for a single Z_i, but for the
    cap. Where margin + z is negative, the bound counts as 1.
    """
    a, b = math.exp(-1 / scale), math.exp(-1 / base_scale)
    # From z = first on, draws a^(margin + z + 1) / (1 + a) is at most 1.
    first = max(-margin, math.ceil(scale * math.log(draws / (1 + a)) - 1 - margin))
    below = b ** (1 - first) / (1 + b) if first <= 0 else 1 - b**first / (1 + b)  # Pr[Z < first]
    # Both sums are geometric. The near one, over the negative z, starts from its largest term.
    growth, terms, start = 1 / base_scale - 1 / scale, max(0, -first), max(0, first)
    largest = first if growth < 0 else -1
    near = math.exp(largest / base_scale - (margin + largest + 1) / scale) if terms else 0.0
    near *= math.expm1(-terms * abs(growth)) / math.expm1(-abs(growth)) if growth else terms
    far = -math.exp(-start / base_scale - (margin + start + 1) / scale)
    far /= math.expm1(-1 / scale - 1 / base_scale)
    return min(1.0, below - draws * math.expm1(-1 / base_scale) / (1 + b) / (1 + a) * (near + far))


def log_moment(rate: float, scale: float) -> float:
    """Return ln E[exp(rate Z)] of discrete Laplace noise; infinite from rate 1 / scale on; 0 for no noise.

    It is -ln(1 - 2 a (cosh(rate) - 1) / (1 - a)^2), which follows from (1 - a e^rate)(1 - a e^-rate).
    """
    if scale == 0:
        return 0.0
    left = 1 - variance(scale) * (math.cosh(rate) - 1) if rate * scale < 1 else 0.0
    return -math.log(left) if left > 0 else math.inf


def largest_sum(variances: Floats, scale: float, failure: float) -> float:
    """Return an m such that several noisy sums are all within m, but for probability `failure`.

    See `some_sum_exceeds`.

    Args:
        variances: of the sums, shape (sums,).
        scale: largest Laplace scale, 0 for no noise.
        failure: probability that some sum exceeds the bound.
    """
    return smallest_bound(lambda bounds: some_sum_exceeds(variances, scale, bounds), failure)


def smallest_bound(fails: Callable[[Floats], Floats], failure: float) -> float:
    """Return about the smallest bound >= 0 that fails with probability `failure` at most.

    Args:
        fails: failure probabilities of bounds, shape (bounds,); it falls as a bound grows.
        failure: above 0.
    """
    low, high = 0.0, 1.0
    if fails(np.zeros(1))[0] <= failure:
        return 0.0
    while fails(np.array([high]))[0] > failure:
        low, high = high, 2 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fails(np.array([middle]))[0] <= failure else (middle, high)
    return high


def some_sum_exceeds(variances: Floats, scale: float, bounds: Floats, times: Floats | None = None) -> Floats:
    """Bound the probabilities that some of several noisy sums is farther from 0 than a bound.

    The sums are of w_i Z_i with |w_i| <= 1 and scales of at most `scale`.
    - ln E[exp(rate sqrt(u) Z)] is convex in u and 0 at u = 0. So it is at most u log_moment(rate) for u <= 1.
    - Of several scales, the largest has the largest log_moment per variance.
    - So ln E[exp(rate sum)] is at most V / variance(scale) log_moment(rate) for a sum of variance V.
    - By Chernoff, Pr[|sum| > m] <= 2 exp(V / variance(scale) log_moment(rate) - rate m), for any rate.
    - The sums need not be independent, because their failures are added up.

    Args:
        variances: of the sums, shape (sums,).
        scale: largest Laplace scale, 0 for no noise.
        bounds: at least 0, shape (bounds,).
        times: how many sums have each variance, shape (sums,); None where each counts once.

    Returns:
        One bound on the probability for each of `bounds`; it may be above 1.
    """
    some = variances > 0
    if scale == 0 or not some.any():
        return np.zeros(len(bounds))
    variances, times = variances[some], None if times is None else times[some]
    rates, moments = _moments(scale)
    most = float(variances.max()) / variance(scale)
    part = max(1 / _FINENESS, most / _AMOUNTS)
    amounts, which = np.unique(np.ceil(variances / variance(scale) / part), return_inverse=True)
    many = np.bincount(which, times)
    exponents = np.outer(moments, part * amounts)
    least = [np.minimum(0, (exponents - rates[:, None] * bound).min(axis=0)) for bound in bounds]
    return np.asarray(2 * np.exp(np.array(least).reshape(len(bounds), -1)) @ many)


def sum_exceeds(draws: int, scale: float, bounds: Floats) -> Floats:
    """Return the probabilities that a sum of `draws` noises Z of one scale exceeds a bound, on one side.

    They are exact, but for 1e-12: E[exp(i t Z)] = 1 / (1 + variance (1 - cos t)), and a Fourier transform of
    its power gives all probabilities. It is taken over so many integers that what lies beyond is below 1e-20.
    Where these are too many, it is Chernoff's bound of `some_sum_exceeds`.

    Args:
        draws: number of noises.
        scale: of each, 0 for no noise.
        bounds: at least 0, shape (bounds,).
    """
    if scale == 0 or draws == 0:
        return np.zeros(len(bounds))
    reach = math.ceil(60 * scale * (math.sqrt(draws) + 1)) + 1
    if reach > _MOST_REACH:
        return some_sum_exceeds(np.array([draws * variance(scale)]), scale, bounds) / 2
    beyond = _beyond(draws, scale, reach)
    return np.asarray(beyond[np.minimum(np.floor(bounds), reach - 1).astype(np.int64)])


@lru_cache(maxsize=64)
def _beyond(draws: int, scale: float, reach: int) -> Floats:
    """Return Pr[sum > m] for m = 0, ..., reach - 1; see `sum_exceeds`."""
    size = 1 << (2 * reach).bit_length()
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    transform = np.exp(-draws * np.log1p(variance(scale) * (1 - np.cos(angles))))
    chances = np.maximum(0, np.fft.irfft(transform, size)[: reach + 1])
    return np.asarray(np.cumsum(chances[::-1])[::-1][1:] + 1e-12)


def sum_of_errors(first: Floats, second: Floats, failure: float) -> int:
    """Return the smallest i for which the sum of two errors exceeds i steps with `failure` at most.

    Let H(x) and G(x) bound the probabilities that the first error exceeds x, and that the second one does
    whatever the first one is. Both fall as x grows. The sum exceeds T with probability at most
    E[g(first)] for g(x) = G(T - x), which is 1 for x > T. So that is at most

        g(0) + sum over i >= 0 of (g(i + 1) - g(i)) H(i), counted in steps.

    The sum of two bounds that fail with half of `failure` each would be larger, because both errors are
    rarely large at once.

    Args:
        first: H(0), H(1), ..., shape (steps,).
        second: G(0), G(1), ..., shape (steps,).
        failure: above 0.
    """
    first, second = np.minimum(1, first), np.minimum(1, second)
    falls = second[:-1] - second[1:]
    both = np.append(0.0, np.convolve(falls, first)[: len(falls)])
    fails = second + both + (1 - second[0]) * first
    return int(np.argmax(np.append(fails, 0.0) <= failure))


def largest_one(variance_of_sum: float, scale: float, failure: float) -> float:
    """Return an m such that one noisy sum is within m, but for `failure`; see `largest_sum`.

    Of one sum the bound needs no search: it is the smallest (V / variance(scale) log_moment(rate) +
    ln(2 / failure)) / rate of all rates.
    """
    if scale == 0 or variance_of_sum == 0:
        return 0.0
    rates, moments = _moments(scale)
    return float(((variance_of_sum / variance(scale) * moments - math.log(failure / 2)) / rates).min())


@lru_cache(maxsize=64)
def _moments(scale: float) -> tuple[Floats, Floats]:
    """Return the rates that are tried, and the logarithm of the moment at each; most are near both ends."""
    rates = min(1 / scale, _FASTEST) / (1 + np.exp(-np.linspace(-6, 6, _RATES)))
    return rates, np.array([log_moment(rate, scale) for rate in rates])
