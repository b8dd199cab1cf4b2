"""Maps of the Earth: coasts are where they are, and balls are true, also on the date line and at poles."""

import hashlib
from importlib.resources import files
from typing import Any

import numpy as np
import pyproj
import pytest

from core.geography import Geography
from pipelines.answers.coasts import FILE, outlines
from pipelines.answers.earth import Around, World, near, plane_of
from pipelines.answers.maps import Plane, balls, centers
from pipelines.answers.picture import Picture, Spec
from pipelines.quantities import Metres

GEOD = pyproj.Geod(ellps="WGS84")


def domain(lower: Any = (-90.0, -180.0), upper: Any = (90.0, 180.0)) -> dict[str, Any]:
    bounds = {"lower": list(lower), "upper": list(upper), "step": 10.0}
    return {"columns": ["lat", "lon"], "geography": "wgs84", **bounds}


def layers_of(picture: Picture, mark: str) -> list[Spec]:
    return [layer for plot in picture.plots for layer in plot["layer"] if layer["mark"]["type"] == mark]


def says(layer: Spec) -> Any:
    return layer["encoding"].get("color", {}).get("datum")


def lines_of(layer: Spec) -> list[np.ndarray]:
    """Return the lines of a layer, each of shape (n, 2)."""
    lines: dict[int, list[tuple[float, float]]] = {}
    for row in layer["data"]["values"]:
        lines.setdefault(row["line"], []).append((row["x"], row["y"]))
    return [np.array(line) for line in lines.values()]


def test_the_data_are_those_of_the_package() -> None:
    data = files("pipelines.answers").joinpath(FILE).read_bytes()
    assert hashlib.sha256(data).hexdigest() == (
        "04342cdc1e3016bcd7db1630de95684d67b79fe3c8c460321e87aef469502394"
    )
    assert "Michael Bostock" in files("pipelines.answers").joinpath("countries-50m.LICENSE").read_text()


def test_coasts_and_borders_are_where_they_are() -> None:
    def nearest(lat: float, lon: float, border: bool) -> float:
        places = np.concatenate([line for line, of in outlines() if of == border])
        ones = np.ones(len(places))
        return float(GEOD.inv(lon * ones, lat * ones, places[:, 1], places[:, 0])[2].min())

    assert nearest(50.1, 1.6, False) < 20_000  # the Channel, near Abbeville
    assert nearest(43.3, 5.35, False) < 20_000  # Marseille
    assert nearest(48.58, 7.8, True) < 20_000  # the Rhine at Strasbourg
    assert nearest(48.58, 7.8, False) > 300_000
    cuts = [line for line, _ in outlines() if (np.abs(line[:, 1]) > 179.99).sum() > 3]
    assert not cuts  # the date line is no coast


def test_the_world_has_a_scale_and_longitudes_to_the_right() -> None:
    plane = plane_of(domain())
    assert isinstance(plane, World) and (plane.x.title, plane.y.title) == ("lon (degrees)", "lat (degrees)")
    picture = balls(plane, [((45.0, 9.0), Metres(130_000.0, 10))], "the ball")
    named = {says(layer): layer for layer in layers_of(picture, "line")}
    assert {"coast", "border of a country", "the ball"} <= named.keys()
    assert 2000 < sum(len(line) for line in lines_of(named["coast"])) < 6000
    (scale,) = layers_of(picture, "rule")
    (row,) = scale["data"]["values"]
    kilometres = float(str(says(scale)).split(" km")[0].replace(",", ""))
    true = GEOD.inv(row["x"], row["y"], row["x2"], row["y"])[2] / 1000
    assert true == pytest.approx(kilometres, rel=0.01) and str(says(scale)).endswith("km at this latitude")
    (ring,) = [layer for layer in layers_of(picture, "point") if says(layer) == "around a small ball"]
    assert ring["data"]["values"] == [{"x": 9.0, "y": 45.0}]


@pytest.mark.parametrize(
    ("center", "pieces"), [((45.0, 9.0), 1), ((-17.0, 179.0), 3), ((89.0, 30.0), 2), ((-80.0, -175.0), 2)]
)
def test_the_edge_of_a_ball_is_as_far_as_its_radius_everywhere(center: Any, pieces: int) -> None:
    radius = 1_500_000.0
    (layer,) = [
        each for each in layers_of(balls(World.of(domain()), [(center, radius)], "the ball"), "line")
        if says(each) == "the ball"
    ]  # fmt: skip
    lines = lines_of(layer)
    assert len(lines) == pieces and ("fill" in layer["mark"]) == (pieces == 1)
    for x, y in np.concatenate(lines).tolist():
        assert GEOD.inv(center[1], center[0], x, y)[2] == pytest.approx(radius, rel=0.002)
    assert all(np.abs(np.diff(line[:, 0])).max() < 180 for line in lines)


def test_a_region_across_the_date_line_is_in_one_piece() -> None:
    wide = plane_of(domain((-50.0, 100.0), (10.0, -120.0)))
    assert isinstance(wide, World) and (wide.x.low, wide.x.high) == (100, 240)
    assert wide.ordered((0.0, -170.0)) == (190.0, 0.0) and wide.ordered((0.0, 170.0)) == (170.0, 0.0)
    assert "360" in wide.encoding["x"]["axis"]["labelExpr"]
    small = plane_of(domain((-22.0, 175.0), (-12.0, -175.0)))
    assert isinstance(small, Around) and small.middle == pytest.approx((-17.0, 180.0), abs=0.01)
    assert small.x.title == "km to the east of the middle"
    (x, y) = small.ordered((-17.0, -179.0))
    assert x == pytest.approx(106.5, abs=0.5) and abs(y) < 1


def test_close_up_is_in_kilometres_and_has_coasts() -> None:
    earth = Geography.of((-90, -180), (90, 180), 10.0)
    picture = near(earth, (45.5, 9.3), Metres(129_070.0, 10))
    (rule,) = layers_of(picture, "rule")
    (radius,) = rule["data"]["values"]
    assert radius["x2"] - radius["x"] == pytest.approx(129.07) and says(rule) == "its radius, 129.07 km"
    (ball,) = [layer for layer in layers_of(picture, "line") if says(layer) == "the ball"]
    (edge,) = lines_of(ball)
    assert (
        np.allclose(np.hypot(*edge.T), 129.07, atol=0.01) and ball["mark"]["interpolate"] == "linear-closed"
    )
    shown = {says(layer): lines_of(layer) for layer in layers_of(picture, "line")}
    for x, y in np.concatenate(shown["coast"] + shown["border of a country"]).tolist():
        assert abs(x) < 900 and abs(y) < 900  # nothing from elsewhere, but for the ends of lines that leave
    pole = near(earth, (90.0, 0.0), Metres(0.0, 10))
    assert not layers_of(pole, "rule") and len(layers_of(pole, "point")) == 1


def test_noise_of_centers_is_as_wide_as_it_is_there() -> None:
    picture = centers(World.of(domain()), [(60.0, 10.0)], [5], [111_200.0], "rows")
    across, up = layers_of(picture, "rule")[1:]
    (a,), (b,) = across["data"]["values"], up["data"]["values"]
    assert (a["x2"] - a["x"], b["y2"] - b["y"]) == pytest.approx((4.0, 2.0))


def test_other_columns_have_other_planes() -> None:
    plane = plane_of({"columns": ["lat", "lon"], "lower": [-90.0, -180.0], "upper": [90.0, 180.0]})
    assert type(plane) is Plane and plane.ground == [] and plane.reach((0, 0), 2.0) == (2.0, 2.0)
