"""Wrong versions of latitude and longitude as points of a metric space."""

from tests.mutants.mutant import Mutant, Selection

_METRIC = Selection(("tests/core/test_geography.py",), "distances or sphere_is or stretch or cap")
_ROWS = Selection(
    ("tests/core/test_geography.py",), "every_row or radius_of_the_world or rounded_correctly or outside"
)
_ANSWERS = Selection(("tests/core/test_geography.py",), "wide_centers or screening or promised or certified")
_UNITS = Selection(("tests/transforms/test_unit_records.py",), "mean_of_places")

EARTH = (
    Mutant(
        12,
        "core/geography.py",
        "the ellipsoid is taken for a sphere",
        "_KAPPA = 1.5 * _FLATTENING / (2 - _FLATTENING)",
        "_KAPPA = 0.0 * _FLATTENING / (2 - _FLATTENING)",
        _METRIC,
    ),
    Mutant(
        12,
        "core/geography.py",
        "a chord is taken for the way",
        "return middle, round(2 * RADIUS * math.asin(math.sqrt(min(1.0, max(0.0, part)))), 3)",
        "return middle, round(radius, 3)",
        _METRIC,
    ),
    Mutant(
        12,
        "core/geography.py",
        "a map may be so wide that it is not true",
        "return math.sqrt(2) * math.sin(self._middle[1] / 2) <= math.sin(MOST / 2)",
        "return math.sin(self._middle[1] / 2) <= 5 * math.sin(MOST / 2)",
        _METRIC,
    ),
    Mutant(
        12,
        "core/geography.py",
        "promises do not allow for the metric",
        "STRETCH = 1.012",
        "STRETCH = 1.009",
        _METRIC,
    ),
    Mutant(
        12,
        "core/geography.py",
        "a row's point has the sine of a library, which may differ by the row's place in an array",
        "across, along = sine_and_cosine(turned + self.west)",
        "across, along = np.sin(np.radians(turned + self.west)), np.cos(np.radians(turned + self.west))",
        _ROWS,
    ),
    Mutant(
        12,
        "core/geography.py",
        "longitudes beyond the date line are out of bounds",
        "return np.asarray(np.remainder(values - self.west, 360.0) > self.width)",
        "return np.asarray((values < self.west) | (values > self.west + self.width))",
        _ROWS,
    ),
    Mutant(
        12,
        "core/domain.py",
        "the radius that bounds a record's vector is too small",
        "return math.ceil((RADIUS + math.hypot(*middle)) / self.step + math.sqrt(self.dimension) / 2)",
        "return math.ceil((RADIUS - 9 * self.step) / self.step)",
        _ROWS,
    ),
    Mutant(
        12,
        "core/centers/space.py",
        "centers lie inside of the Earth, where others are nearest",
        "steps = self.grid.onto(self.middle + positions / (1 << self.bits))",
        "steps = self.middle + positions / (1 << self.bits)",
        _ANSWERS,
    ),
    Mutant(
        12,
        "core/geography.py",
        "rows are screened by a ball of another radius",
        "return whole.place(values)[0], 2 * RADIUS * math.sin(angle)",
        "return whole.place(values)[0], 2 * RADIUS * math.sin(2 * angle)",
        _ANSWERS,
    ),
    Mutant(
        12,
        "core/one_cluster/practical/guarantee.py",
        "promised radii do not allow for the metric",
        "more *= split.setting.grid.stretch",
        "more *= 1.0",
        _ANSWERS,
    ),
    Mutant(
        12,
        "transforms/unit_records.py",
        "the mean place of a unit lies inside of the Earth",
        "records = np.clip(np.rint(grid.onto(records)).astype(np.int64), 0, np.asarray(grid.extents))",
        "pass",
        _UNITS,
    ),
)
"""Distances, points of rows, balls, centers and promises."""

_SHOWN = Selection(("tests/pipelines/test_every_unit.py",), "stand or own")

UNITS = (
    Mutant(
        12,
        "pipelines/quantities.py",
        "a distance in columns of several units has the unit of the first",
        "unit = None if mixed else units[axis or 0]",
        "unit = units[axis or 0]",
        _SHOWN,
    ),
    Mutant(
        12,
        "pipelines/answers/statistics.py",
        "a variance has the unit of its column",
        'return after(column, "²" if measure == "variance" else "") if measure',
        'return after(column, "" if measure == "variance" else "") if measure',
        _SHOWN,
    ),
)
"""What stands beside the numbers of columns that name a unit."""
