"""Maps of latitudes and longitudes: the world in degrees, and places near another one in kilometres."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.geography import Geography, east_and_north
from pipelines.answers.axis import Axis
from pipelines.answers.coasts import outlines, pieces
from pipelines.answers.maps import BALL, Plane
from pipelines.answers.picture import DOT, WIDTH, Floats, Picture, Spec, layer, plot
from pipelines.answers.text import on_grid
from pipelines.dates import grid_of

_KILOMETRE, _DEGREE = 1000.0, 111.2
"""Metres of a kilometre, and kilometres of a degree of latitude."""

_COAST, _BORDER = "coast", "border of a country"
_THIN: Spec = {"strokeWidth": 0.8, "clip": True}


@dataclass(frozen=True)
class EarthPlane(Plane):
    """A map of the Earth, or of a part of it.

    Args:
        earth: the domain.
    """

    earth: Geography

    def project(self, places: Floats) -> Floats:
        """Return x and y of places, shape (n, 2), of latitudes and longitudes in degrees."""
        raise NotImplementedError

    def ordered(self, point: Sequence[float]) -> tuple[float, float]:
        """See `Plane.ordered`."""
        x, y = self.project(np.array([point], dtype=float))[0].tolist()
        return x, y

    def ball(self, says: str | None, center: Sequence[float], radius: float) -> Spec:
        """See `Plane.ball`: the true edge, which is open where the map is cut."""
        around = self.project(self.earth.edge(center, radius, 121))
        parts = list(pieces(around, self._joined(around)))
        whole = len(parts) == 1 and len(parts[0]) == len(around)
        style: Spec = {**BALL, "interpolate": "linear-closed" if whole else "linear"}
        if not whole:
            del style["fill"]
        return self._lines(says, parts, "sea", symbol="circle", **style)

    @property
    def ground(self) -> list[Spec]:
        """See `Plane.ground`: the coasts and borders in the map, simplified to what can be seen."""
        pixel = (self.x.high - self.x.low) / WIDTH
        low = np.array([self.x.low, self.y.low]) - 9 * pixel
        high = np.array([self.x.high, self.y.high]) + 9 * pixel
        found: dict[bool, list[Floats]] = {False: [], True: []}
        for places, border in outlines():
            line = self.project(places)
            inside = np.asarray(np.logical_and(line >= low, line <= high).all(axis=1))
            seen = self._joined(line) & (inside[1:] | inside[:-1])
            for part in pieces(line, seen):
                if np.ptp(part, axis=0).max() >= 3 * pixel:
                    found[border].append(_thinned(part, 1.8 * pixel))
        layers = [(_BORDER, found[True], 0.4), (_COAST, found[False], 1.0)]
        return [
            self._lines(says, lines, "soft", opacity=opacity, **_THIN)
            for says, lines, opacity in layers
            if lines
        ]

    def _joined(self, line: Floats) -> NDArray[np.bool_]:
        """Return whether a point and the next one are joined: not where they are at two ends of the map."""
        return np.asarray(np.abs(np.diff(line[:, 0])) < (self.x.high - self.x.low) / 2)

    def _lines(self, says: str | None, lines: Sequence[Floats], color: str, **style: Any) -> Spec:
        rows = [
            {"x": round(x, 3), "y": round(y, 3), "order": i, "line": number}
            for number, line in enumerate(lines)
            for i, (x, y) in enumerate(line.tolist())
        ]
        apart = {"order": {"field": "order", "type": "quantitative"}, "detail": {"field": "line"}}
        return layer("line", says, rows, {**self.encoding, **apart}, color, **style)


@dataclass(frozen=True)
class World(EarthPlane):
    """A map in degrees, which may go across the date line."""

    @classmethod
    def of(cls, domain: Mapping[str, Any]) -> "World":
        """See `Plane.of`."""
        earth, (latitude, longitude) = _earth(domain), domain["columns"]
        x = Axis.of(f"{longitude} (degrees)", earth.west, earth.west + earth.width)
        return cls(
            x, Axis.of(f"{latitude} (degrees)", earth.south, earth.north), (longitude, latitude), 1, earth
        )

    @property
    def height(self) -> float:
        """See `Plane.height`: both scales are equal at the middle latitude."""
        middle = math.radians((self.y.low + self.y.high) / 2)
        wide = (self.x.high - self.x.low) * max(0.2, math.cos(middle))
        return WIDTH * min(1.2, max(0.4, (self.y.high - self.y.low) / wide))

    @property
    def encoding(self) -> Spec:
        """See `Plane.encoding`. Beyond the date line, longitudes begin again at -180."""
        found = super().encoding
        if self.x.high > 180:
            found["x"]["axis"] = {"labelExpr": "datum.value > 180 ? datum.value - 360 : datum.value"}
        return found

    def project(self, places: Floats) -> Floats:
        """See `EarthPlane.project`."""
        middle = (self.x.low + self.x.high) / 2
        turned = np.remainder(places[:, 1] - middle + 180, 360) - 180
        return np.stack([middle + turned, places[:, 0]], axis=1)

    def reach(self, center: Sequence[float], length: float) -> tuple[float, float]:
        """See `Plane.reach`."""
        degrees = float(length) / _KILOMETRE / _DEGREE
        return degrees / max(0.01, math.cos(math.radians(center[0]))), degrees

    @property
    def ground(self) -> list[Spec]:
        """See `Plane.ground`: also a scale in kilometres, as near to the equator as the map goes."""
        room = 0.06 * (self.y.high - self.y.low)
        at = min(max(0.0, self.y.low + room), self.y.high - room)
        kilometres = _DEGREE * math.cos(math.radians(at))
        length = _round((self.x.high - self.x.low) * kilometres / 8)
        first = self.x.low + 0.03 * (self.x.high - self.x.low)
        row = {"x": first, "x2": first + length / kilometres, "y": at}
        says = f"{length:,} km at this latitude"
        encoding = {**self.encoding, "x2": {"field": "x2"}}
        return [*super().ground, layer("rule", says, [row], encoding, "ink", strokeWidth=2)]


@dataclass(frozen=True)
class Around(EarthPlane):
    """A map about a place, in kilometres to the east and to the north of it.

    Args:
        middle: latitude and longitude of the place, in degrees.
    """

    middle: tuple[float, float]

    @classmethod
    def about(cls, earth: Geography, middle: Sequence[float], reach: float, where: str) -> "Around":
        """Return a map.

        Args:
            earth: the domain.
            middle: latitude and longitude of the place, in degrees.
            reach: how far it goes, in metres.
            where: the place in words.
        """
        far, names = reach / _KILOMETRE, (f"km to the east of {where}", f"km to the north of {where}")
        axes = [Axis(name, -far, far) for name in names]
        return cls(axes[0], axes[1], names, 1, earth, (float(middle[0]), float(middle[1])))

    @property
    def height(self) -> float:
        """See `Plane.height`."""
        return WIDTH

    def project(self, places: Floats) -> Floats:
        """See `EarthPlane.project`."""
        return east_and_north(places, self.middle) / _KILOMETRE

    def reach(self, center: Sequence[float], length: float) -> tuple[float, float]:
        """See `Plane.reach`."""
        return float(length) / _KILOMETRE, float(length) / _KILOMETRE


def plane_of(domain: Mapping[str, Any]) -> Plane:
    """Return the plane of a domain as `domain_of` returns it."""
    if domain.get("geography") is None:
        return Plane.of(domain)
    earth = _earth(domain)
    return Around.about(earth, *earth.disc, "the middle") if earth.flat else World.of(domain)


def near(earth: Geography, center: Sequence[float], radius: float) -> Picture:
    """Return a ball close up, with coasts and borders, its center and its radius."""
    reach = 1.25 * radius if radius > 0 else 4 * earth.step
    plane = Around.about(earth, center, reach, "the center")
    at = plane.place(center)
    layers = [*plane.ground, plane.ball("the ball", center, radius)]
    if radius > 0:
        far = {**at, "x2": at["x"] + radius / _KILOMETRE}
        along, style = {**plane.encoding, "x2": {"field": "x2"}}, Spec(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(
            layer("rule", f"its radius, {on_grid(radius, earth.step)}", [far], along, "deep", **style)
        )
    layers.append(layer("point", "its center", [at], plane.encoding, "deep", **DOT))
    return Picture("The ball close up", (plot(plane.height, layers),))


def _earth(domain: Mapping[str, Any]) -> Geography:
    earth = grid_of(domain).geography
    if earth is None:
        raise ValueError("The domain has no geography.")
    return earth


def _thinned(line: Floats, least: float) -> Floats:
    """Return a line without the points that are nearer than `least` to the last one kept; both ends stay."""
    points: list[list[float]] = line.tolist()
    kept = points[:1]
    for x, y in points[1:-1]:
        if abs(x - kept[-1][0]) + abs(y - kept[-1][1]) > least:
            kept.append([x, y])
    return np.array([*kept, points[-1]])


def _round(length: float) -> int:
    """Return the largest 1, 2 or 5 times a power of ten that is at most a length, at least 1."""
    power = 10 ** math.floor(math.log10(max(1.0, length)))
    return int(power * max(each for each in (1, 2, 5) if each * power <= max(1.0, length)))
