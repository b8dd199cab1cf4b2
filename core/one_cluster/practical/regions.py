"""The regions whose records a run counts: balls in two to six dimensions, boxes otherwise."""

from functools import lru_cache

from core.domain import Grid
from core.one_cluster.practical.ball_cover import DIMENSIONS, BallCover
from core.one_cluster.practical.boxes import Boxes

Regions = Boxes | BallCover


@lru_cache(64)
def regions_of(grid: Grid) -> Regions:
    """Return the regions of a grid."""
    return BallCover(grid) if grid.dimension in DIMENSIONS else Boxes(grid)
