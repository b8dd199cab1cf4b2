"""Distances of points against geodesics, what becomes of rows, and balls on the date line and at poles."""

import ast
import inspect
import math
import textwrap

import numpy as np
import pyproj
import pytest

from core.balls import Balls
from core.budget import Budget
from core.centers.params import KMeans, KMedian
from core.centers.task import K_MEANS, K_MEDIAN
from core.domain import Grid
from core.errors import InvalidValue
from core.geography import FAR, MOST, OF_SPHERE, RADIUS, STRETCH, Geography, sine_and_cosine, sum_of
from core.k_cover.params import KCover
from core.k_cover.task import K_COVER
from core.neighbors import Neighbors
from core.one_cluster.paper.method import Paper
from core.one_cluster.params import OneCluster
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block, run_in_memory
from core.task import Setting
from tests.core.seeded import SeededNoise

GEOD = pyproj.Geod(ellps="WGS84")
ONE, BUDGET, SALT = Neighbors("add_or_remove_one"), Budget(1.0, 1e-6), b"a salt of 16 byt"

WORLD = ((-90, -180), (90, 180))
REGIONS = {
    "alps": ((43, 4), (49, 17)),
    "fiji": ((-22, 175), (-12, -175)),
    "date line as the eastern bound": ((60, 170), (70, 180)),
    "north pole": ((83, -180), (90, 180)),
    "a part of the north pole": ((83, 10), (90, -160)),
    "south pole": ((-90, -180), (-83, 180)),
    "usa": ((24, -125), (50, -66)),
    "half of the earth": ((-90, -100), (90, 80)),
    "all but a strip": ((-80, -170), (80, 170)),
    "world": WORLD,
}
FLAT = {
    "alps",
    "fiji",
    "date line as the eastern bound",
    "north pole",
    "a part of the north pole",
    "south pole",
}


def region(name, step=10.0):
    return Geography.of(*REGIONS[name], step)


def rows_in(earth, n, seed=0):
    """Return uniform rows of a region, and its corners."""
    rng = np.random.default_rng(seed)
    low, high = (math.sin(math.radians(each)) for each in (earth.south, earth.north))
    latitude = np.degrees(np.arcsin(rng.uniform(low, high, n)))
    longitude = earth.west + rng.uniform(0, earth.width, n)
    latitude[:4] = [earth.south, earth.south, earth.north, earth.north]
    longitude[:4] = [earth.west, earth.west + earth.width] * 2
    return np.stack([latitude, longitude], axis=1)


def true_distance(a, b):
    return GEOD.inv(a[:, 1], a[:, 0], b[:, 1], b[:, 0])[2]


def grid_distance(earth, a, b):
    apart = np.linalg.norm(earth.place(a) - earth.place(b), axis=1)
    return apart if earth.flat else 2 * RADIUS * np.arcsin(np.minimum(1, apart / (2 * RADIUS)))


@pytest.mark.parametrize("name", REGIONS)
def test_distances_are_those_of_geodesics(name):
    earth = region(name)
    assert earth.flat == (name in FLAT)
    a = rows_in(earth, 4000)
    near = a + np.random.default_rng(2).normal(0, 0.05, a.shape)
    for b in (rows_in(earth, 4000, seed=1), np.clip(near, [earth.south, -400], [earth.north, 400])):
        inside = ~earth.outside(b[:, 1], 1)
        a_, b_ = a[inside], b[inside]
        true = true_distance(a_, b_)
        ratio = (grid_distance(earth, a_, b_)[true > 1] / true[true > 1]) - 1
        most = OF_SPHERE + (1 / math.cos(MOST / 2) - 1 if earth.flat else 0)
        assert np.abs(ratio).max() <= most
        assert np.abs(ratio).max() < 0.01


def test_the_sphere_is_as_near_as_said_on_every_meridian_and_parallel():
    """The radii of curvature say more than samples do: the bound holds for all distances, and is reached."""
    flattening = 1 / 298.257223563
    squared = flattening * (2 - flattening)
    latitude = np.linspace(-89.99, 89.99, 100_001)
    sine = np.sin(np.radians(latitude))
    parallel = 6_378_137 / np.sqrt(1 - squared * sine**2) * np.cos(np.radians(latitude))
    meridian = 6_378_137 * (1 - squared) / (1 - squared * sine**2) ** 1.5
    at = Geography.of(*WORLD, 1.0).place(np.stack([latitude, np.zeros_like(latitude)], axis=1))
    along = np.arctan2(at[:, 2], at[:, 0])
    stretched = RADIUS * np.gradient(along, np.radians(latitude)) / meridian, at[:, 0] / parallel
    assert np.abs(np.concatenate(stretched)[1:-1] - 1).max() == pytest.approx(0.000844, abs=2e-6)
    assert OF_SPHERE > 0.000846


def test_the_stretch_covers_maps_the_sphere_and_the_ellipsoid():
    ellipsoid = (1 + OF_SPHERE) / (1 - OF_SPHERE)
    x = math.sin(FAR / RADIUS)
    assert ellipsoid / math.cos(MOST / 2) ** 2 <= STRETCH
    assert ellipsoid * math.asin(x) / x <= STRETCH
    assert max(ellipsoid / math.cos(MOST / 2) ** 2, ellipsoid * math.asin(x) / x) > STRETCH - 0.0005


def test_sines_are_exact_to_the_last_digits():
    degrees = np.concatenate(
        [np.random.default_rng(0).uniform(-540, 540, 10_000), np.arange(-540, 541, 15.0)]
    )
    sine, cosine = sine_and_cosine(degrees)
    turned = np.radians(np.remainder(degrees, 360))
    assert np.abs(sine - np.sin(turned)).max() < 1e-14
    assert np.abs(cosine - np.cos(turned)).max() < 1e-14
    right, zero = sine_and_cosine(np.array([90.0, 270.0, -90.0, 450.0])), np.zeros(4)
    assert (right[0] == [1, -1, -1, 1]).all() and (right[1] == zero).all()


@pytest.mark.parametrize("name", ["alps", "fiji", "world"])
def test_a_point_depends_on_its_own_row_alone(name):
    """A row more or less in a file moves no other row, however the rows are held."""
    grid = Grid.on_earth(region(name, 0.5))
    values = rows_in(grid.geography, 1000)
    points = grid.quantize(values)
    for first in range(9):
        assert (grid.quantize(values[first:]) == points[first:]).all()
        assert (grid.quantize(np.asfortranarray(values[first:])) == points[first:]).all()
    assert (grid.quantize(values[::-3]) == points[::-3]).all()
    assert all((grid.quantize(values[i : i + 1]) == points[i]).all() for i in range(50))


def test_rows_are_placed_by_operations_that_are_rounded_correctly():
    """No sine of a library, which may differ in its last digit by the place in an array."""
    allowed = {
        "asarray",
        "clip",
        "empty",
        "float64",
        "maximum",
        "remainder",
        "rint",
        "sqrt",
        "where",
        "zeros_like",
    }
    used = set()
    for function in (Geography.place, sum_of, sine_and_cosine):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        used |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
        }
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.MatMult)]
    assert {"sqrt", "remainder"} <= used <= allowed


@pytest.mark.parametrize("name", REGIONS)
def test_places_come_back(name):
    earth = region(name, step=1.0)
    rows = rows_in(earth, 3000)
    back = earth.locate(earth.place(rows))
    assert (np.abs(back) <= [90, 180]).all()
    assert true_distance(rows, back).max() < 0.01


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("step", [7.0, 50_000.0])
def test_every_row_is_in_the_bounds_of_the_grid_and_near_its_point(name, step):
    earth = region(name, step)
    grid = Grid.on_earth(earth)
    assert (grid.dimension, grid.columns) == ((2 if earth.flat else 3), 2)
    rows = rows_in(earth, 3000)
    points = grid.quantize(rows)
    placed = np.asarray(grid.lower) + points * grid.step
    assert np.abs(placed - earth.place(rows)).max() <= 0.5001 * step
    away = np.linalg.norm(points - np.asarray(grid.bounding_center), axis=1)
    assert away.max() <= grid.bounding_radius


def test_the_radius_of_the_world_is_that_of_the_sphere():
    grid = Grid.on_earth(region("world"))
    assert RADIUS / 10 <= grid.bounding_radius <= RADIUS / 10 + 3


def test_rows_outside_are_moved_to_the_nearer_bound_and_longitudes_go_around():
    earth = region("fiji")
    rows = np.array(
        [[-17, 170.0], [-17, -170.0], [-17, 182.0], [-30, 179.0], [0, -540.0], [-17, 1.0], [-17, -3.0]]
    )
    moved = np.array([[-17, 175], [-17, -175], [-17, -178], [-22, 179], [-12, 180], [-17, 175], [-17, -175]])
    assert np.allclose(earth.place(rows), earth.place(moved.astype(float)), atol=1e-6)
    assert earth.outside(rows[:, 0], 0).tolist() == [False] * 3 + [True, True, False, False]
    assert earth.outside(rows[:, 1], 1).tolist() == [True, True, False, False, False, True, True]
    world = region("world")
    assert not world.outside(np.array([-1e9, -180, 180, 359.0, 1e300]), 1).any()
    assert np.allclose(world.place(np.array([[10.0, 190.0]])), world.place(np.array([[10.0, -170.0]])))


@pytest.mark.parametrize("radius", [50.0, 5e3, 3e5, 2e6, 1.4e7])
@pytest.mark.parametrize("depth", [0.0, 0.03, -0.01])
def test_a_ball_of_points_is_a_cap(radius, depth):
    """Also about a center below or above the surface: rows inside are those within the radius on the way."""
    earth = region("world", step=1.0)
    at = np.array([[math.radians(40), math.radians(179.9)]])
    below = depth * min(radius, RADIUS) * 5
    center = earth.place(np.degrees(at))[0] * (1 - below / RADIUS)
    middle, reach = earth.cap(center, radius)
    rng = np.random.default_rng(1)
    far = np.sort(rng.uniform(0, min(2.0 * reach, 2.0e7), 5000))
    longitude, latitude, _ = GEOD.fwd(np.full(5000, middle[1]), np.full(5000, middle[0]),
                                      rng.uniform(0, 360, 5000), far)  # fmt: skip
    rows = np.stack([latitude, longitude], axis=1)
    inside = np.linalg.norm(earth.place(rows) - center, axis=1) <= radius
    assert inside[far < 0.998 * reach - 1].all()
    assert not inside[far > 1.002 * reach + 1].any()


def test_caps_are_balls_of_points_again():
    for name in ("world", "alps", "fiji"):
        grid = Grid.on_earth(region(name, 1.0))
        for row in rows_in(grid.geography, 20):
            center, radius = grid.place_ball(row, 12_345.0)
            middle, reach = grid.restore_ball(center, radius)
            assert true_distance(np.array([row]), np.array([middle]))[0] < 0.01
            assert reach == pytest.approx(12_345, abs=0.01)


def test_the_middle_of_the_earth_has_a_place_too():
    earth = region("world")
    assert earth.onto(np.zeros((1, 3))).tolist() == [[0, 0, RADIUS]]
    assert np.isfinite(earth.locate(np.zeros(3))).all()
    for radius, reach in ((0.0, 0.0), (RADIUS - 1, 0.0), (2 * RADIUS, math.pi * RADIUS)):
        assert earth.cap(np.zeros(3), radius)[1] == pytest.approx(reach, abs=1e-2)


def test_points_are_moved_onto_the_sphere_and_stay_on_a_map():
    sphere, plane = (Grid.on_earth(region(name)) for name in ("world", "alps"))
    inner = np.array([[100, 200, 300], [637_278, 637_278, 900_000]])
    moved = sphere.onto(inner)
    assert np.allclose(np.linalg.norm(moved * 10 + np.asarray(sphere.lower), axis=1), RADIUS)
    flat = np.array([[10.0, 20.0]])
    assert (plane.onto(flat) == flat).all()


@pytest.mark.parametrize(
    ("lower", "upper", "step", "says"),
    [
        ((-91, -180), (90, 180), 10, "latitude is a number from -90 to 90"),
        ((-90, -181), (90, 180), 10, "longitude is a number from -180 to 180"),
        ((-90, -180), (90, math.nan), 10, "longitude is a number"),
        ((10, 0), (10, 5), 10, "southern bound must be below"),
        ((10, 5), (20, 5), 10, "must differ"),
        ((10, 180), (20, -180), 10, "must differ"),
        ((10,), (20,), 10, "give the bound of latitude"),
        (("2013-01-01", 0), (20, 5), 10, "latitude is a number"),
        (*WORLD, 0, "metres, at least 0.001"),
        (*WORLD, math.inf, "metres, at least 0.001"),
        (*WORLD, "1 km", "metres, at least 0.001"),
    ],
)
def test_wrong_bounds_are_refused(lower, upper, step, says):
    with pytest.raises(InvalidValue, match=says):
        Geography.of(lower, upper, step)


def test_steps_that_no_grid_has_are_refused():
    with pytest.raises(InvalidValue, match=r"squared diameter|steps of axis"):
        Grid.on_earth(Geography.of(*WORLD, 0.001))
    with pytest.raises(InvalidValue, match="larger than the region"):
        Grid.on_earth(Geography.of((0, 0), (0.001, 0.001), 1e7))


@pytest.mark.parametrize("bounds", [WORLD, ((-60, -180), (60, 180))])
def test_a_step_may_be_as_long_as_the_region_is_wide(bounds):
    assert Geography.of(*bounds, 1.2e7).step == 1.2e7
    with pytest.raises(InvalidValue, match="use at most 12745518"):
        Geography.of(*bounds, 1.3e7)


def test_the_ends_of_a_region_are_in_it_and_have_one_name():
    earth = Geography.of((0, 180), (10, -170), 1.0)
    assert earth == Geography.of((0, -180), (10, -170), 1.0)
    assert not earth.outside(np.array([0.0, 10.0]), 0).any()
    assert not earth.outside(np.array([180.0, -180.0, -170.0]), 1).any()
    nearly = earth.locate(earth.place(np.array([[1e-12, -180.0]])))
    at_0 = region("world").locate(region("world").place(np.array([[-1e-12, -1e-12]])))
    assert nearly.tolist() == [[0, -180]] and not np.signbit(at_0).any()  # no place is at -0°


# --- answers -----------------------------------------------------------------------------------------------

PLACES = {
    "on the date line": (WORLD, (-17.5, 179.95)),
    "at the north pole": (WORLD, (89.9, 60.0)),
    "at the south pole": (WORLD, (-89.95, -100.0)),
    "in the alps": (WORLD, (46.5, 8.0)),
    "on the date line, on a map": (REGIONS["fiji"], (-17.5, 179.95)),
    "at the pole, on a map": (REGIONS["north pole"], (89.9, 60.0)),
    "in the alps, on a map": (REGIONS["alps"], (46.5, 8.0)),
}
WITHIN, HELD, OTHERS = 20_000.0, 1500, 4000


def planted(place, seed=0, held=HELD, within=WITHIN):
    """Return rows of a disc of true metres, among uniform ones."""
    bounds, (latitude, longitude) = PLACES[place]
    rng = np.random.default_rng(seed)
    far = within * np.sqrt(rng.uniform(size=held))
    longitudes, latitudes, _ = GEOD.fwd(np.full(held, longitude), np.full(held, latitude),
                                        rng.uniform(0, 360, held), far)  # fmt: skip
    earth = Geography.of(*bounds, 10.0)
    background = rows_in(earth, OTHERS, seed + 1)
    return earth, np.concatenate([np.stack([latitudes, longitudes], axis=1), background])


def rings(middle, far):
    """Return a row at each distance from a place, in true metres, in some direction."""
    turns = np.random.default_rng(8).uniform(0, 360, len(far))
    longitudes, latitudes, _ = GEOD.fwd(
        np.full(len(far), middle[1]), np.full(len(far), middle[0]), turns, far
    )
    return np.stack([latitudes, longitudes], axis=1)


def block_of(grid, rows):
    return Block(grid.quantize(rows), np.arange(len(rows), dtype=np.uint64))


def far_from(middle, rows):
    return true_distance(np.tile(middle, (len(rows), 1)), rows)


def answer_of(task, params, earth, rows, noise, budget=BUDGET):
    grid = Grid.on_earth(earth)
    plan = task.plan(grid, params, budget, ONE, SALT)
    return plan, run_in_memory(plan.rounds, [block_of(grid, rows)], plan.start, noise).result(grid)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(3))
def test_a_ball_is_found_and_its_radius_is_true(place, seed):
    """The noisy count is within its error of what geodesics say is within the radius, give or take 1%."""
    earth, rows = planted(place, seed)
    plan, found = answer_of(ONE_CLUSTER, OneCluster(HELD), earth, rows, SeededNoise(seed))
    far = far_from(found.center, rows)
    error = plan.promises["count_error"]
    assert np.count_nonzero(far <= 0.99 * found.radius) - error <= found.count
    assert found.count <= np.count_nonzero(far <= 1.01 * found.radius) + error
    assert found.radius < 1.3 * WITHIN
    assert far_from(found.center, np.array([PLACES[place][1]]))[0] < WITHIN
    if found.radius_factor is not None:
        smallest = WITHIN * math.sqrt((HELD - 100) / HELD)  # about that of the smallest ball with HELD rows
        assert found.radius <= found.radius_factor * WITHIN and found.radius_factor * WITHIN > smallest


@pytest.mark.parametrize("place", PLACES)
def test_screening_counts_what_the_ball_held(place):
    """Without noise the count is that of the ball, and the released cap holds the same rows."""
    earth, rows = planted(place)
    _, found = answer_of(ONE_CLUSTER, OneCluster(HELD), earth, rows, SeededNoise(0, 0.0))
    grid = Grid.on_earth(earth)
    balls = Balls.of(grid, [{"center": list(found.center), "radius": found.radius}])
    held = balls.hold(grid.quantize(rows))
    assert abs(np.count_nonzero(held) - found.count) <= 5
    around = rings(found.center, np.linspace(0, 2 * found.radius, 2000))
    far, held = far_from(found.center, around), balls.hold(grid.quantize(around))
    assert held[far < 0.99 * found.radius].all() and not held[far > 1.01 * found.radius].any()


def test_balls_of_the_whole_earth_hold_all():
    grid = Grid.on_earth(region("world"))
    balls = Balls.of(grid, [{"center": [10, 20], "radius": math.pi * RADIUS}])
    assert balls.hold(grid.quantize(rows_in(grid.geography, 1000))).all()


def test_balls_of_a_cover_are_across_the_date_line_and_at_a_pole():
    earth, rows = planted("on the date line")
    _, more = planted("at the north pole", 5)
    rows = np.concatenate([rows, more[:HELD]])
    _, found = answer_of(K_COVER, KCover(2, target=HELD), earth, rows, SeededNoise(1), Budget(2.0, 1e-6))
    assert len(found.balls) == 2
    near = {place for place in ("on the date line", "at the north pole") for ball in found.balls
            if far_from(ball.center, np.array([PLACES[place][1]]))[0] < WITHIN}  # fmt: skip
    assert len(near) == 2


def test_centers_lie_on_the_earth_and_counts_are_of_the_nearest():
    """Rows on both sides of the date line have their center there, and not on the other side of the Earth."""
    rng = np.random.default_rng(3)
    fiji = np.stack([rng.normal(-17, 3, 20_000), np.where(rng.uniform(size=20_000) < 0.5, 179, -179)], axis=1)
    fiji[:, 1] += rng.normal(0, 3, 20_000)
    europe = np.stack([rng.normal(48, 5, 10_000), rng.normal(10, 8, 10_000)], axis=1)
    rows = np.concatenate([fiji, europe])
    for task, params in ((K_MEANS, KMeans(2)),):
        plan, found = answer_of(task, params, Geography.of(*WORLD, 100.0), rows, SeededNoise(2))
        assert far_from(found.centers[0], np.array([[-17.0, 180.0]]))[0] < 100_000
        assert far_from(found.centers[1], np.array([[48.0, 10.0]]))[0] < 150_000
        nearest = np.argmin([far_from(center, rows) for center in found.centers], axis=0)
        assert np.abs(np.bincount(nearest) - found.counts).max() <= plan.promises["count_error"]
        assert all(0 < noise < 100_000 for noise in found.noise)


@pytest.mark.parametrize(("task", "params"), [(K_MEANS, KMeans(3)), (K_MEDIAN, KMedian(3))])
def test_wide_centers_lie_on_the_earth(task, params):
    """Means of rows all over the Earth lie deep inside of it, where the nearest center may be another one."""
    earth = Geography.of(*WORLD, 100.0)
    rows = rows_in(earth, 20_000)
    grid = Grid.on_earth(earth)
    plan = task.plan(grid, params, BUDGET, ONE, SALT)
    state = run_in_memory(plan.rounds, [block_of(grid, rows)], plan.start, SeededNoise(4))
    at = np.asarray(grid.lower) + grid.step * (state.space.middle + state.positions / (1 << state.space.bits))
    assert np.abs(np.linalg.norm(at, axis=1) - RADIUS).max() < grid.step
    found = state.result(grid)
    nearest = np.argmin([far_from(center, rows) for center in found.centers], axis=0)
    counts = np.bincount(nearest, minlength=3)
    assert np.abs(counts - found.counts).max() <= plan.promises["count_error"] + 0.003 * len(rows)


def test_a_map_promises_more_than_the_sphere():
    """Wherever a region has a map, the plan of the map has the smaller error: so it is always taken."""

    class Sphere(Geography):
        @property
        def flat(self):
            return False

    for name in ("alps", "fiji", "north pole"):
        for step, epsilon in ((1.0, 1.0), (100.0, 0.1), (100.0, 4.0)):
            errors = []
            for kind in (Geography, Sphere):
                grid = Grid.on_earth(kind.of(*REGIONS[name], step))
                plan = ONE_CLUSTER.plan(grid, OneCluster(1000), Budget(epsilon, 1e-6), ONE, SALT)
                errors.append(plan.chosen.errors["practical"])
            assert errors[0] < errors[1]


@pytest.mark.parametrize("name", ["world", "alps"])
def test_promised_radii_allow_for_the_metric(name):
    def promises(grid):
        return ONE_CLUSTER.plan(grid, OneCluster(1500), BUDGET, ONE, SALT).promises

    grid = Grid.on_earth(region(name))
    bare = Grid(grid.lower, grid.upper, grid.step)
    assert grid.stretch == STRETCH and bare.stretch == 1
    setting = Setting(grid, OneCluster(2 * 10**10, method="paper"), BUDGET, ONE, SALT)
    flat = Setting(bare, OneCluster(2 * 10**10, method="paper"), BUDGET, ONE, SALT)
    factors = [Paper(each).accuracy(1.0).promises.radius_factor for each in (setting, flat)]
    assert factors[0] == pytest.approx(STRETCH * factors[1])
    if name == "alps":  # where the same box has the same bounding radius
        assert promises(grid)["radius_factor"] == pytest.approx(STRETCH * promises(bare)["radius_factor"])


def test_no_radius_is_certified_where_the_metric_is_not():
    grid = Grid.on_earth(region("world"))
    assert grid.shows(FAR) and not grid.shows(FAR + 1)
    assert Grid.on_earth(region("alps")).shows(FAR + 1)


def test_a_point_beyond_its_map_is_on_the_other_side_of_the_earth() -> None:
    """Noise may move a center as far as that."""
    region = Geography.of((40.0, 5.0), (50.0, 15.0), 1000.0)
    (latitude, longitude), _ = region.disc
    assert region.flat
    for far in (2.0, 3.0, 1e6):
        found = region.locate(RADIUS * np.array([0.0, far]))
        assert found == pytest.approx([-latitude, longitude - 180], abs=0.2)
