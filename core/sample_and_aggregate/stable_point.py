"""A small ball that holds a part of the blocks' answers, even a minority: the 1-cluster of the answers."""

from dataclasses import dataclass

import numpy as np

from core.draws import Charged, Draw
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.rounds import Block, run_in_memory
from core.sample_and_aggregate.outputs import Aggregation, Outputs, Stable


@dataclass(frozen=True, kw_only=True)
class StablePoint(Aggregation):
    """Release center and radius of the 1-cluster of the answers (Nissim, Stemmer and Vadhan 2016, Section 6).

    The published algorithm samples records first, so that the stable point speaks of the distribution they
    come from; privacy does not need it, as one record is in one block.

    Args:
        rounds: of the 1-cluster, which start without a state.
    """

    rounds: tuple[Charged, ...]

    def draws(self) -> tuple[Draw, ...]:
        """See `core.draws.Charged`: those of all rounds."""
        return tuple(draw for step in self.rounds for draw in step.draws())

    def release(self, aggregate: Outputs, state: None, noise: Noise) -> Stable | NotFound:
        """Run all rounds of the 1-cluster on the answers."""
        answers = Block(self.table(aggregate), np.arange(self.blocks, dtype=np.uint64))
        found = run_in_memory(self.rounds, [answers], None, noise)
        return Stable(found.center, found.radius) if isinstance(found, Found) else NotFound()
