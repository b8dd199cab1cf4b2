"""AboveThreshold on values that may change a lot between neighbors, but only after one of them is large."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from core.budget import Cost
from core.mechanisms.above_threshold import AboveThreshold
from core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Stopping(AboveThreshold):
    """Release the index of the first value that reaches the threshold, where large values end what is known.

    Let i be the first value that reaches `large` on either of two neighbors. The values up to i differ by at
    most D; those after it may differ by any amount. Value i is at least `large` - D on both, so it is passed
    over only if the noise exceeds large - D - threshold: that is delta (`AboveThreshold.missed`). Otherwise
    the index follows from values of sensitivity D, which costs what `AboveThreshold` does. So does all that
    is drawn after it, if it sees neighbors wherever the index is at most i.

    Args:
        threshold: value to reach.
        large: see above.
        queries: how many values there are at most.
    """

    kind: ClassVar[str] = "stopping AboveThreshold"
    threshold: int
    large: int
    queries: int

    def cost_of_one(self) -> Cost:
        """See `Draw.cost_of_one`."""
        margin = int(self.large - self.sensitivity - self.threshold)
        return Cost(super().cost_of_one().epsilon, self.missed(margin, self.queries))

    def stop(self, values: Sequence[int], noise: Noise) -> int | None:
        """Release the index of the first of at most `queries` values that reaches the threshold, or None."""
        return self.first(values, self.threshold, noise)
