"""What all methods of the cdf compute from their release, and what they promise."""

import math
from collections.abc import Callable, Sequence

from core.cdf.found import Promises, Range, Reading
from core.cdf.params import Cdf
from core.task import Accuracy, Setting


def range_ends(setting: Setting[Cdf]) -> list[tuple[float, float, int, int]]:
    """Return each range with the number of grid points below it and up to its end."""
    grid = setting.grid
    size, origin, step = grid.extents[0] + 1, grid.lower[0], grid.step
    ends = []
    for low, high in setting.params.ranges:
        start = math.ceil(min(max((low - origin) / step, 0), size) - 1e-9)
        stop = math.floor(max(min((high - origin) / step, size - 1), -1) + 1e-9) + 1
        ends.append((low, high, start, max(start, stop)))
    return ends


def read(
    setting: Setting[Cdf], variances: Sequence[float], largest_error: Callable[[float], float]
) -> Reading:
    """Return what is computed from a release. Rounding to whole records adds at most half a record of error.

    Args:
        setting: what is asked for.
        variances: variance of each range's noise, before inference.
        largest_error: takes a failure probability and returns a bound on the largest error of all counts.
    """
    failure = setting.params.failure
    whole, half = (math.floor(largest_error(part) + 0.5) for part in (failure, failure / 2))
    asked = zip(range_ends(setting), variances, strict=True)
    return Reading(
        ranges=tuple(Range(*query, math.sqrt(each)) for query, each in asked),
        failure=failure,
        error=whole,
        half_error=half,
        total_public=setting.neighbors.name == "replace_one",
    )


def promised(reading: Reading, average: float) -> Accuracy:
    """Return what is promised; methods are compared by the error of a cumulative count.

    Args:
        reading: of the release.
        average: mean squared error of a random range.
    """
    distance = "n" if reading.total_public else "n, or twice that as the total is noisy too,"
    note = (
        f"The distribution is learned to a Kolmogorov distance of {reading.error:,} / {distance} from that "
        "of the data."
    )
    return Accuracy(
        Promises(reading.error, 2 * reading.error, math.sqrt(average)), error=reading.error, notes=(note,)
    )
