"""What rounds share that count every point of an axis."""

from core.aggregate import Counts
from core.rounds import Block, State
from core.stored import Stored


class CountsPoints:
    """A round that counts the records at every point of one axis."""

    def summarize(self, block: Block, state: State) -> Counts:
        """Count the records at every grid point that has any."""
        return Counts.of(block.points[:, 0])

    def recount(self, counts: Stored, state: State) -> Counts:
        """See `core.rounds.total_of_stored`."""
        return counts.whole()
