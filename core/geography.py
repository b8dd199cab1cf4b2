"""Latitude and longitude as points of a metric space: the sphere in three columns, or a map of a region.

A row's point is a public function of the row alone: `Geography.place` never looks at another row. So a task
on these points has the sensitivity and the neighbors that it has on any other columns: two databases that
differ in one row become two sets of points that differ in one point. The function is made of sums, products,
quotients, square roots and remainders alone, which IEEE 754 rounds correctly, whatever else is in the array.
Sines of a library may differ in the last digit between the body and the end of an array, and a row more in a
file would then move another one.

Distances. Let φ be the latitude on the ellipsoid of WGS84 and λ the longitude. A row lies on a sphere of
radius R at the longitude λ and the latitude μ = φ - κ sin 2φ, where κ is 3/2 of the third flattening. (This
is the rectifying latitude to first order.) With the radii of curvature M and N of the ellipsoid, this map
stretches meridians by R (1 - 2κ cos 2φ) / M, and parallels by R cos μ / (N cos φ). Both are within
1 ± `OF_SPHERE` for all φ. A distance is the length of a shortest path, so all distances on the sphere are
within 1 ± `OF_SPHERE` of those on the ellipsoid.

- In three columns, the distance of two points is the chord, and a chord x is an arc of 2 R asin(x / 2R). A
  ball cuts a cap out of the sphere, wherever its center is, so a released ball is a cap; see `Geography.cap`.
- A small region has a map in two columns: the azimuthal equal-area projection (Lambert 1772) about its
  middle. At the angle c from there it stretches one direction by cos(c / 2), and the other by 1 / cos(c / 2).
  All points of the map lie in the disc of the angle `MOST`. Discs of the sphere and of the plane are convex,
  so distances change by at most that much, too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidValue

Floats = NDArray[np.float64]

KINDS = ("wgs84",)
"""Names of what latitudes and longitudes refer to."""

_FLATTENING = 1 / 298.257223563
_KAPPA = 1.5 * _FLATTENING / (2 - _FLATTENING)
RADIUS = 6_372_759.4
"""R in metres: the middle of all that a meridian or parallel says about it."""

OF_SPHERE = 0.00085
"""Distances on the sphere differ from those on the ellipsoid by at most this part of them."""

MOST = 0.2
"""Largest angle, in radians, between the middle of a map and its points; see `STRETCH`."""

FAR = 1_500_000.0
"""Metres up to which `STRETCH` holds."""

STRETCH = 1.012
"""How much more two lengths in the grid's metric may differ than the true ones, as a ratio.

In a map, a length may be 1 / cos(MOST / 2) times the true one, and another one cos(MOST / 2) times. On the
sphere, a cap of the radius a lies in a ball of a radius of at most a. A ball of the radius b cuts out a cap
of at most R asin(b / R). Where that is at most `FAR`, it is at most asin(x) / x times b, x = sin(FAR / R).
Either is less than this, also times (1 + OF_SPHERE) / (1 - OF_SPHERE), for the ellipsoid.
"""

SPHERE_PERCENT, MAP_PERCENT = 0.1, 0.6
"""By how much distances of points differ at most from those on the ellipsoid, for those who read a plan."""

_FINEST = 0.001
_METRES_OF_DEGREE = 111_000
_FINER = 2
"""Decimals of released degrees beyond those of a step."""

_DEGREE = math.pi / 180
_NEWTON = 8


@dataclass(frozen=True)
class Geography:
    """A region of the Earth and a step: how rows of latitude and longitude become points.

    Args:
        south: smallest latitude, in degrees.
        west: where the region begins, in degrees of longitude, from -180 on and below 180.
        north: largest latitude, in degrees.
        width: degrees of longitude from the western to the eastern end, up to 360. So a region may lie across
            the date line.
        step: distance between neighboring points of the grid, in metres.
    """

    south: float
    west: float
    north: float
    width: float
    step: float

    @classmethod
    def of(cls, lower: Sequence[Any], upper: Sequence[Any], step: Any) -> "Geography":
        """Return the geography of bounds in degrees, each of latitude and longitude, and a step in metres.

        A western bound above the eastern one means that the region lies across the date line.

        Raises:
            InvalidValue: a bound or the step is out of range.
        """
        for field, ends in (("lower", lower), ("upper", upper)):
            if len(ends) != 2:
                allowed = "with geography give the bound of latitude, and then that of longitude"
                raise InvalidValue(field, ends, allowed, f"has {len(ends)} values")
            for name, value, most in zip(("latitude", "longitude"), ends, (90, 180), strict=True):
                if isinstance(value, str) or not -most <= value <= most:
                    allowed = f"a {name} is a number from -{most} to {most} degrees"
                    raise InvalidValue(field, value, allowed, f"has {value!r:.60}")
        south, west, north, east = (float(each) for each in (*lower, *upper))
        if south >= north:
            allowed = "the southern bound must be below the northern one"
            raise InvalidValue("lower", south, allowed, f"has the latitude {south} and upper {north}")
        if west == east or (west, east) == (180, -180):
            allowed = "the western and the eastern bound must differ"
            raise InvalidValue("lower", west, allowed, f"has the longitude {west} and upper {east}")
        if isinstance(step, str) or not (step >= _FINEST and math.isfinite(step)):
            allowed = f"with geography it must be a finite number of metres, at least {_FINEST}"
            raise InvalidValue("step", step, allowed, f"is {step!r:.60}")
        width = east - west if east > west else east - west + 360
        made = cls(south, -180.0 if west == 180 else west, north, width, float(step))
        widest = 2 * RADIUS * math.sin(min(made._middle[1], math.pi / 2))
        if step > widest:
            allowed = f"use at most {math.floor(widest)}"
            raise InvalidValue("step", step, allowed, f"is {step} metres, larger than the region")
        return made

    @cached_property
    def _middle(self) -> tuple[Floats, float]:
        """The middle of a map, as a direction, and the largest angle between it and a point of the region.

        About a pole of the region, that is the angle to the opposite parallel. About another point, the angle
        grows along a parallel away from it, and along a meridian, which is a great circle, it has no maximum
        but at the ends. So it is largest at a corner.
        """
        halfway = self.west + self.width / 2
        low, high = (_auxiliary(latitude * _DEGREE) for latitude in (self.south, self.north))
        center = _direction((low + high) / 2, halfway * _DEGREE)
        corners = [_direction(each, self.west * _DEGREE) for each in (low, high)]
        found = [(center, max(_angle(center, corner) for corner in corners))]
        if self.north == 90:
            found.append((_direction(math.pi / 2, halfway * _DEGREE), math.pi / 2 - low))
        if self.south == -90:
            found.append((_direction(-math.pi / 2, halfway * _DEGREE), high + math.pi / 2))
        return min(found, key=lambda each: each[1])

    @property
    def disc(self) -> tuple[tuple[float, float], float]:
        """The middle of a map, in degrees, and the radius about it that holds the region, in metres."""
        up, angle = self._middle
        latitude, longitude = _degrees_of(up).tolist()
        return (latitude, longitude), RADIUS * angle

    @property
    def flat(self) -> bool:
        """Whether the region has a map in two columns: a square about it lies in the disc of `MOST`."""
        return math.sqrt(2) * math.sin(self._middle[1] / 2) <= math.sin(MOST / 2)

    @cached_property
    def _axes(self) -> Floats:
        """East, north and up at the middle of the map, shape (3, 3)."""
        up, _ = self._middle
        across = (self.west + self.width / 2) * _DEGREE
        east = np.array([-math.sin(across), math.cos(across), 0.0])
        return np.array([east, np.cross(up, east), up])

    @property
    def extents(self) -> tuple[tuple[int, int], ...]:
        """Lowest and highest coordinate of each column of points, in steps about the middle."""
        if self.flat:
            reach = math.ceil(2 * RADIUS * math.sin(self._middle[1] / 2) / self.step) + 1
            return ((-reach, reach),) * 2
        low, high = (_auxiliary(latitude * _DEGREE) for latitude in (self.south, self.north))
        heights = (math.cos(low), math.cos(high), *((1.0,) if low < 0 < high else ()))
        east = self.west + self.width
        ends = []
        for turned in (0, 90):  # the cosine of the longitude, and its sine
            inner = [way for way in range(-360, 721, 180) if self.west < way + turned < east]
            sides = [math.cos((way - turned) * _DEGREE) for way in (self.west, east)]
            sides += [1.0 if way % 360 == 0 else -1.0 for way in inner]
            ends.append([side * height for side in sides for height in heights])
        ends.append([math.sin(low), math.sin(high)])
        return tuple(
            (math.floor(RADIUS * min(side) / self.step) - 1, math.ceil(RADIUS * max(side) / self.step) + 1)
            for side in ends
        )

    def outside(self, values: NDArray[Any], axis: int) -> NDArray[np.bool_]:
        """Return which values lie outside of the bounds: of latitude for axis 0, of longitude for axis 1."""
        with np.errstate(invalid="ignore"):
            if axis == 0:
                return np.asarray((values < self.south) | (values > self.north))
            return np.asarray(np.remainder(values - self.west, 360.0) > self.width)

    def place(self, values: NDArray[Any]) -> Floats:
        """Return the points of rows in metres, shape (n, 2) on a map or (n, 3) on the sphere.

        A latitude outside of the bounds becomes the nearer bound. A longitude is taken modulo 360, and one
        outside of the bounds becomes that bound to which the way is shorter.

        Args:
            values: shape (n, 2), latitudes and longitudes in degrees, all finite.
        """
        latitude = np.clip(np.asarray(values[:, 0], dtype=np.float64), self.south, self.north)
        turned = np.remainder(np.asarray(values[:, 1], dtype=np.float64) - self.west, 360.0)
        beyond = np.where(turned - self.width < 360.0 - turned, self.width, 0.0)
        turned = np.where(turned > self.width, beyond, turned)
        sine, cosine = sine_and_cosine(latitude)
        moved = -2 * _KAPPA * sine * cosine
        square = moved * moved
        little = moved * (1 - square / 6 * (1 - square / 20))
        nearly = 1 - square / 2 * (1 - square / 12)
        sine, cosine = sine * nearly + cosine * little, cosine * nearly - sine * little
        cosine = np.maximum(cosine, 0.0)
        across, along = sine_and_cosine(turned + self.west)
        points = np.empty((len(sine), 2 if self.flat else 3), order="F")
        directions = (cosine * along, cosine * across, sine)
        if not self.flat:
            for axis, direction in enumerate(directions):
                points[:, axis] = RADIUS * direction
            return points
        local = [sum_of(directions, axis) for axis in self._axes.tolist()]
        scale = RADIUS * np.sqrt(2 / (1 + local[2]))
        points[:, 0], points[:, 1] = local[0] * scale, local[1] * scale
        return points

    def onto(self, points: Floats) -> Floats:
        """Return points in metres (n, d), of the sphere moved onto it, along its radius.

        The middle of the Earth, which is equally far from all of it, becomes the North Pole.
        """
        if self.flat:
            return points
        squares = points[:, 0] * points[:, 0]
        for axis in (1, 2):
            squares = squares + points[:, axis] * points[:, axis]
        length = np.sqrt(squares)
        moved = points * (RADIUS / np.where(length > 0, length, 1.0))[:, None]
        moved[length == 0] = (0.0, 0.0, RADIUS)
        return np.asarray(moved)

    def locate(self, points: Floats) -> Floats:
        """Return latitudes and longitudes of points in metres, (..., d) to (..., 2), in degrees.

        They have about two decimals more than a step. This is for what is released, and not for rows.
        """
        if self.flat:
            east, north = points[..., 0] / RADIUS, points[..., 1] / RADIUS
            far = np.minimum(np.hypot(east, north), 2.0)
            shorter = np.sqrt(1 - far * far / 4)  # the sine of the angle c is 2 sin(c / 2) cos(c / 2)
            local = np.stack([east * shorter, north * shorter, 1 - far * far / 2], axis=-1)
            points = local @ self._axes
        decimals = max(0, math.ceil(math.log10(_METRES_OF_DEGREE / self.step))) + _FINER
        rounded = np.round(_degrees_of(points), min(decimals, 12))
        rounded[..., 1] = np.where(rounded[..., 1] == 180, -180.0, rounded[..., 1])
        return np.asarray(rounded + 0.0)

    def cap(self, center: Floats, radius: float) -> tuple[Floats, float]:
        """Return the middle of the cap that a ball of points is, in degrees, and the cap's radius, in metres.

        Let s be the distance of the ball's center from that of the sphere. A point of the sphere at the angle
        a from the direction of the center is in the ball of radius r if R^2 + s^2 - 2 R s cos(a) <= r^2, that
        is, if sin^2(a / 2) <= (r^2 - (R - s)^2) / (4 R s).

        Args:
            center: shape (d,), metres.
            radius: metres.
        """
        middle = self.locate(center)
        if self.flat:
            return middle, round(radius, 3)
        length = float(np.linalg.norm(center))
        part = (radius**2 - (RADIUS - length) ** 2) / max(4 * RADIUS * length, 1e-9)
        return middle, round(2 * RADIUS * math.asin(math.sqrt(min(1.0, max(0.0, part)))), 3)

    def ball(self, middle: Sequence[float], radius: float) -> tuple[Floats, float]:
        """Return the ball of points that a cap is: center and radius, in metres.

        Args:
            middle: latitude and longitude of the cap, in degrees.
            radius: of the cap, in metres.
        """
        whole = Geography(-90.0, self.west, 90.0, 360.0, self.step)
        values = np.array([middle], dtype=np.float64)
        if not self.flat:
            angle = min(math.pi / 2, radius / RADIUS / 2)
            return whole.place(values)[0], 2 * RADIUS * math.sin(angle)
        local = self._axes @ (whole.place(values)[0] / RADIUS)
        return local[:2] * RADIUS * math.sqrt(2 / max(1e-9, 1 + local[2])), radius

    def edge(self, middle: Sequence[float], radius: float, points: int = 73) -> Floats:
        """Return points of the edge of a cap, shape (points, 2), in degrees; the first is the last one, too.

        Args:
            middle: latitude and longitude of the cap, in degrees.
            radius: of the cap, in metres.
            points: how many.
        """
        up = _direction(_auxiliary(middle[0] * _DEGREE), middle[1] * _DEGREE)
        east = np.array([-math.sin(middle[1] * _DEGREE), math.cos(middle[1] * _DEGREE), 0.0])
        turns, angle = np.linspace(0, 2 * math.pi, points)[:, None], radius / RADIUS
        around = np.cos(turns) * east + np.sin(turns) * np.cross(up, east)
        return _degrees_of(math.cos(angle) * up + math.sin(angle) * around)


def east_and_north(degrees: Floats, middle: Sequence[float]) -> Floats:
    """Return places as metres to the east and to the north of a place, by distance and direction from there.

    Args:
        degrees: latitudes and longitudes, shape (n, 2).
        middle: latitude and longitude, in degrees.
    """
    up = _direction(_auxiliary(middle[0] * _DEGREE), middle[1] * _DEGREE)
    east = np.array([-math.sin(middle[1] * _DEGREE), math.cos(middle[1] * _DEGREE), 0.0])
    radians = degrees * _DEGREE
    latitude = radians[:, 0] - _KAPPA * np.sin(2 * radians[:, 0])
    flat = np.cos(latitude)
    at = np.stack([flat * np.cos(radians[:, 1]), flat * np.sin(radians[:, 1]), np.sin(latitude)], axis=1)
    local = at @ np.stack([east, np.cross(up, east), up], axis=1)
    length = np.hypot(local[:, 0], local[:, 1])
    angle = np.arctan2(length, local[:, 2])
    return np.asarray(local[:, :2] * (RADIUS * angle / np.maximum(length, 1e-300))[:, None])


def _degrees_of(directions: Floats) -> Floats:
    """Return latitudes and longitudes of directions from the middle, (..., 3) to (..., 2), in degrees."""
    latitude = np.arctan2(directions[..., 2], np.hypot(directions[..., 0], directions[..., 1]))
    longitude = np.arctan2(directions[..., 1], directions[..., 0])
    found = latitude
    for _ in range(_NEWTON):
        found = latitude + _KAPPA * np.sin(2 * found)
    return np.asarray(np.stack([found, longitude], axis=-1) / _DEGREE)


def sum_of(directions: Sequence[Floats], axis: Sequence[float]) -> Floats:
    """Return the inner products of directions (three arrays) with an axis, always in the same order."""
    return directions[0] * axis[0] + directions[1] * axis[1] + directions[2] * axis[2]


def sine_and_cosine(degrees: Floats) -> tuple[Floats, Floats]:
    """Return sines and cosines of degrees, each a function of its own number alone; see the module.

    The degrees are first reduced to at most 45 by multiples of 90, which is exact, and then these are
    polynomials of Taylor's series, with errors below 1e-15.
    """
    quarter = np.rint(degrees / 90.0)
    x = (degrees - 90.0 * quarter) * _DEGREE
    square = x * x
    sine, cosine = np.zeros_like(x), np.zeros_like(x)
    for power in range(16, 0, -2):
        sine = (1 + sine) * square * (-1.0 / (power * (power + 1)))
        cosine = (1 + cosine) * square * (-1.0 / (power * (power - 1)))
    sine, cosine = x * (1 + sine), 1 + cosine
    turns = np.remainder(quarter, 4.0)
    swapped = (turns == 1) | (turns == 3)
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    return np.where(turns >= 2, -sine, sine), np.where((turns == 1) | (turns == 2), -cosine, cosine)


def _auxiliary(latitude: float) -> float:
    return latitude - _KAPPA * math.sin(2 * latitude)


def _direction(latitude: float, longitude: float) -> Floats:
    around = math.cos(latitude)
    return np.array([around * math.cos(longitude), around * math.sin(longitude), math.sin(latitude)])


def _angle(one: Floats, other: Floats) -> float:
    return 2 * math.asin(min(1.0, float(np.linalg.norm(one - other)) / 2))
