"""The choices of a plan of the practical 1-cluster as rounds of their own, which count every region.

`FindRadiusAndRegion` chooses level and region from the cells of one pass. Here each choice has a pass, and
the second one counts all regions of the level, one by one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from core.aggregate import Counts
from core.one_cluster.found import NotFound
from core.one_cluster.practical.locate import FindRadius, FindRadiusAndRegion, FindRegion, Located, Scaled
from core.one_cluster.practical.regions import Regions
from core.rounds import Block


@dataclass(frozen=True)
class RadiusAlone(FindRadius):
    """The choice of a level."""

    name: str = "good_radius"
    floor: None = None

    def summarize(self, block: Block, state: Any) -> Counts:
        return self.regions.tally(self.sample.of(block))

    def release(self, aggregate: Counts, state: Any, noise: Any) -> Scaled | NotFound:
        return super().release(aggregate, noise)


@dataclass(frozen=True)
class RegionAlone(FindRegion):
    """The choice of a region."""

    name: str = "good_center"

    def summarize(self, block: Block, state: Scaled | NotFound) -> Counts:
        if isinstance(state, NotFound):
            return Counts.of(np.zeros(0, dtype=np.int64))
        where = self.regions.coordinates(self.sample.of(block))
        return Counts.joined([Counts.of(keys) for keys in self.regions.keys(where, state.level, fine=True)])

    def release(self, aggregate: Counts, state: Scaled | NotFound, noise: Any) -> Located | NotFound:
        if isinstance(state, NotFound):
            return state
        chosen = self.region.choose(lambda: [(aggregate.keys, aggregate.counts)], noise)
        if chosen is None:
            return NotFound()
        corner = self.regions.corner(chosen, state.level)
        return Located(*self.regions.ball(state.level, corner), state.level, corner)


def _alone(kind: Any, choice: Any) -> Any:
    return kind(**{field.name: getattr(choice, field.name) for field in fields(choice)})


def alone(both: FindRadiusAndRegion) -> tuple[RadiusAlone, RegionAlone]:
    """Return the two choices of a round as rounds."""
    return _alone(RadiusAlone, both.radius), _alone(RegionAlone, both.region)


def steps(plan: Any) -> list[Any]:
    """Return the rounds; of the one that chooses level and region, the choice of each."""
    first, *others = plan.rounds
    assert isinstance(first, FindRadiusAndRegion)
    return [*alone(first), *others]


def merged(parts: Iterable[Counts]) -> Counts:
    """Return counts of any number of parts."""
    return Counts.merged([Counts.of(np.zeros(0, dtype=np.int64)), *parts])


def crowded(regions: Regions, cells: Counts, level: int, floor: int) -> Counts:
    """Return by how much the count of each region of a level exceeds a floor, at once."""
    return merged(regions.crowded(cells, level, floor))
