"""How near the errors of a release come to what a plan promises."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tightness:
    """Whether errors may be as large as promised, and on which rows, or why they are usually smaller.

    Args:
        says: a sentence or two for the person who reads the plan. It names the rows on which the promise is
            reached, or the step of the analysis that makes the promise larger than errors are.
        reached: whether rows are known on which a promise that is a quarter smaller would be broken with more
            than the probability that promises may fail. `tests.measured.reaching` has such rows.
    """

    says: str
    reached: bool
