"""What all methods of the cdf compute from their release, and what they promise."""

import math
from collections.abc import Callable, Sequence

from core.cdf.found import Promises, Range, Reading
from core.cdf.largest_errors import LargestErrors
from core.cdf.params import Cdf
from core.decimals import first_from, last_up_to
from core.task import Accuracy, Setting
from core.tightness import Tightness


def range_ends(setting: Setting[Cdf]) -> list[tuple[float, float, int, int]]:
    """Return each range with the number of grid points below it and up to its end."""
    grid = setting.grid
    axis = grid.lower[0], grid.step, grid.extents[0]
    ends = []
    for low, high in setting.params.ranges:
        start = first_from(low, *axis)
        ends.append((low, high, start, max(start, last_up_to(high, *axis) + 1)))
    return ends


def read(
    setting: Setting[Cdf], variances: Sequence[float], largest: Callable[[float], LargestErrors]
) -> Reading:
    """Return what is computed from a release, whose errors are whole numbers.

    Args:
        setting: what is asked for.
        variances: variance of each range's noise, before inference.
        largest: takes a failure probability and returns bounds on the largest errors.
    """
    failure = setting.params.failure
    whole, half = largest(failure), largest(failure / 2)
    asked = zip(range_ends(setting), variances, strict=True)
    return Reading(
        ranges=tuple(Range(*query, math.sqrt(each)) for query, each in asked),
        failure=failure,
        error=math.floor(whole.count),
        half_error=math.floor(half.count),
        range_error=math.floor(whole.range),
        half_range_error=math.floor(half.range),
        total_public=setting.neighbors.name == "replace_one",
    )


def promised(reading: Reading, average: float, tightness: Tightness) -> Accuracy:
    """Return what is promised; methods are compared by the error of a cumulative count.

    Args:
        reading: of the release.
        average: mean squared error of a random range.
        tightness: of the bounds on counts and ranges.
    """
    distance = f"{reading.error:,} / n" if reading.total_public else f"{reading.range_error:,} / n"
    note = (
        f"The distribution is learned to a Kolmogorov distance of {distance} from that of the rows, where n "
        f"is the {'' if reading.total_public else 'released '}number of rows."
    )
    return Accuracy(
        Promises(reading.error, reading.range_error, math.sqrt(average)),
        error=reading.error,
        notes=(note,),
        tightness=dict.fromkeys(("kolmogorov_records", "range_error"), tightness),
    )
