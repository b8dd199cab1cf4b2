"""How near errors of one quantile by the exponential mechanism come to what is promised."""

import math

from core.tightness import Tightness


def hardest(probability: float, bound: float, bracketed: bool) -> Tightness:
    """Return on which rows what is promised of one quantile is attained, if no interval is chosen too."""
    if bracketed:
        return Tightness(
            "The promised rank error holds for the value and for its interval, which are chosen together. It "
            "adds up what all pairs of ends may contribute to each wrong value. No rows are known on which "
            "most of them do. Where values spread, errors are several times smaller.",
            reached=False,
        )
    rows = math.ceil(bound / probability)
    return Tightness(
        "Hardly a smaller rank error can be promised. Where all of some "
        f"{rows:,} rows have the highest value of the domain, every other value is that far from the "
        "wanted rank. Together the others are released with nearly the probability that a promise may fail. "
        "On spread values, errors are several times smaller.",
        reached=True,
    )


def hardest_extreme(error: int) -> Tightness:
    """Return on which rows the promise about an extreme is attained; see 6 of `ExponentialByRank`."""
    return Tightness(
        "Hardly a smaller rank error can be promised. The value is sought inside of the rows by about "
        f"half of it. Where all of some {error:,} rows have one value at the end of the domain, all other "
        "values are as far from that rank on its other side, and together they are released with nearly the "
        "probability that a promise may fail. On spread values, errors are about half of what is promised.",
        reached=True,
    )
