"""AboveThreshold on values that differ by any amount between neighbors after one of them is large."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from core.budget import Cost
from core.mechanisms.above_threshold import AboveThreshold
from core.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Stopping(AboveThreshold):
    """Release the index of the first value that reaches the threshold.

    Assumption. Let i be the index of the first value that reaches `large` in either of two neighbors. The
    values up to i differ by at most the sensitivity D. Those after i may differ by any amount.

    Privacy.
    - Value i is at least large - D in both databases. It is passed over only if the noise exceeds
      large - D - threshold. The probability of that is delta (`AboveThreshold.missed`).
    - Otherwise the index is at most i, and depends on values of sensitivity D alone. It then costs what
      `AboveThreshold` costs.
    - Whatever is drawn afterwards composes with it if it sees neighbors for every index of at most i.

    Args:
        threshold: value to reach.
        large: see above.
        queries: largest number of values.
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
