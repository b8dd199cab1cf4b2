"""Coastlines and borders, of Natural Earth, which is in the public domain.

The file `countries-50m.json` is that of the npm package `world-atlas` 2.0.2, unchanged, whose licence is
beside it: Natural Earth 4.1 at 1:50 million as TopoJSON. There each line is held once: one that two countries
share is a border, and one of a single country is a coast.
"""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FILE = "countries-50m.json"

_CUT, _SOUTHERNMOST = 179.99, -89.9
"""Longitude and latitude beyond which a line is one along which the Earth was cut to be a rectangle."""


@cache
def outlines() -> tuple[tuple[Floats, bool], ...]:
    """Return lines of latitudes and longitudes, each of shape (n, 2), and whether the line is a border."""
    topology = json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))
    scale, first = (np.array(topology["transform"][key]) for key in ("scale", "translate"))
    uses = np.zeros(len(topology["arcs"]), dtype=np.int64)
    for country in topology["objects"]["countries"]["geometries"]:
        np.add.at(uses, list(_arcs(country.get("arcs", []))), 1)
    found = []
    for arc, used in zip(topology["arcs"], uses.tolist(), strict=True):
        places = (np.cumsum(arc, axis=0) * scale + first)[:, ::-1]
        cut = (np.abs(places[:, 1]) > _CUT) | (places[:, 0] < _SOUTHERNMOST)
        found += [(part, used > 1) for part in pieces(places, ~(cut[1:] & cut[:-1]))]
    return tuple(found)


def _arcs(nested: Any) -> Iterator[int]:
    """Yield the numbers of arcs in lists of lists; ~i is the arc i in the other direction."""
    if isinstance(nested, int):
        yield nested if nested >= 0 else ~nested
        return
    for each in nested:
        yield from _arcs(each)


def pieces(line: Floats, joined: NDArray[np.bool_]) -> Iterator[Floats]:
    """Yield the parts of a line between its gaps, those of two points or more.

    Args:
        line: shape (n, ...).
        joined: shape (n - 1,), whether a point and the next one are joined.
    """
    for part in np.split(line, np.flatnonzero(~joined) + 1):
        if len(part) > 1:
            yield part
