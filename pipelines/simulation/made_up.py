"""How many made-up rows there are, and of which shape."""

from typing import NamedTuple

from core.nearest import meant, nearest
from pipelines.errors import JobError, quoted
from pipelines.simulation.shapes import SHAPES

MOST_ROWS = 10_000_000


class MadeUp(NamedTuple):
    """How many made-up records there are, and of which of `SHAPES`."""

    rows: int
    shape: str = SHAPES[0]


def parse_made_up(text: str) -> MadeUp:
    """Return what a text such as `10000:heavy` asks for. Without a shape it is uniform.

    Raises:
        JobError: it is not ROWS or ROWS:SHAPE.
    """
    number, colon, shape = text.partition(":")
    if not number.isdecimal() or not 1 <= int(number) <= MOST_ROWS:
        raise JobError(
            f"--simulate {quoted(text)}: give a number of rows from 1 to {MOST_ROWS:,}, and perhaps a shape, "
            f"such as 10000:{SHAPES[-1]}."
        )
    if colon and shape not in SHAPES:
        close = meant(nearest(shape, SHAPES))
        raise JobError(f"--simulate {quoted(text)}{close}: the shapes are {', '.join(SHAPES)}.")
    return MadeUp(int(number), shape or SHAPES[0])
