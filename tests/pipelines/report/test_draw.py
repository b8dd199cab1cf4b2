"""Every task has pictures: valid, loading nothing, naming their axes and marks, and the same each time."""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from pipelines.answers.axis import Axis
from pipelines.answers.picture import Picture, Row, Strip, curve, short, strips
from pipelines.console.printable import CONTROL, printable
from pipelines.report.draw import draw
from pipelines.tasks import TASKS
from tests.pipelines.report.pictured import figures_of, jobs, release_of
from tests.pipelines.test_every_date import KINDS

JOBS = list(jobs())

TAGS = {"g", "path", "text", "line", "title", "rect", "defs", "clipPath"}

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'&]]>{{ 7 * 7 }}",
    "\x1b[31m\u202enekort\n\ufffe",
    "url(https://example.org/a.png)",
    "W" * 500,
    "\N{GRINNING FACE}" * 40,
)


def texts(svg: str) -> set[str]:
    return {text for element in elements(svg) if (text := element.text)}


def elements(svg: str) -> Iterator[Any]:
    yield from ElementTree.fromstring(svg).iter()


def check_safe(svg: str) -> None:
    """Check that a picture is one SVG element that fits any width, runs nothing and loads nothing."""
    assert not CONTROL.search(svg.replace("\n", ""))
    root, *inside = elements(svg)
    assert root.tag == "svg" and "width" not in root.attrib and len(root.attrib["viewBox"].split()) == 4
    assert {element.tag for element in inside} <= TAGS
    for element in inside:
        for name, value in element.attrib.items():
            assert name not in ("href", "src", "style") and not name.startswith("on")
            if name != "aria-label":  # plain text
                assert "url(" not in value or value.startswith("url(#clip-"), (name, value)
                assert "NaN" not in value and "://" not in value, (name, value)


def layers_of(picture: Picture) -> list[dict[str, Any]]:
    return [layer for plot in picture.plots for layer in plot["layer"]]


def said(picture: Picture) -> dict[str, set[str]]:
    """Return what the legend says of each kind of mark."""
    found: dict[str, set[str]] = {}
    for layer in layers_of(picture):
        encoding = layer["encoding"]
        says = encoding.get("color", {}).get("datum") or encoding.get("opacity", {}).get("title")
        found.setdefault(layer["mark"]["type"], set()).update({says} - {None})
    return found


@pytest.mark.parametrize("name", [name for name in JOBS if name.split("-")[1] in ("0", *KINDS)])
def test_every_release_has_pictures_that_say_what_they_show(name: str) -> None:
    check_pictures(name)


@pytest.mark.parametrize("name", [name for name in JOBS if name.split("-")[1] not in ("0", *KINDS)])
def test_every_variant_has_pictures_too(name: str) -> None:
    check_pictures(name)


def check_pictures(name: str) -> None:
    release, rows = release_of(name)
    assert release["result"] is not None
    figures = figures_of(release, rows)
    assert figures
    for figure in figures:
        svg = str(draw(figure.picture))
        check_safe(svg)
        shown = texts(svg)
        for mark, says in said(figure.picture).items():
            assert says <= shown and (says or mark == "text"), mark
        for axis in axes_of(figure.picture):
            assert axis["title"] in shown or (axis["title"] is None and axis["axis"] is None)
        assert svg == draw(figure.picture)


def axes_of(picture: Picture) -> list[dict[str, Any]]:
    encodings = [layer["encoding"] for layer in layers_of(picture)]
    return [encoding[axis] for encoding in encodings for axis in ("x", "y") if axis in encoding]


@pytest.mark.parametrize("task", TASKS)
def test_names_may_be_hostile(task: str) -> None:
    """The library ends the process, or fails, at some characters, and at some that it cuts in two."""
    release, rows = copy.deepcopy(release_of(f"{task}-0"))
    for name in HOSTILE:
        columns = [f"{i}{name}" for i in range(len(release["domain"]["columns"]))]
        for figure in figures_of({**release, "domain": {**release["domain"], "columns": columns}}, rows):
            svg = str(draw(figure.picture, name))
            check_safe(svg)
            assert any(text[:8] == printable(name)[:8] for text in texts(svg))


def test_keys_of_groups_may_be_hostile() -> None:
    """They come from the rows, so no key may be an error; long ones stay apart."""
    release, rows = release_of("statistics-also-0")
    assert rows is not None
    count = len(rows["c"])
    for name in HOSTILE:
        keys = np.array([f"{name}{i}" for i in range(count)], dtype=object)
        for figure in figures_of(release, {**rows, "c": keys}):
            check_safe(str(draw(figure.picture)))
            shown = {row["name"] for row in layers_of(figure.picture)[-1]["data"]["values"]}
            assert len(shown) == len(layers_of(figure.picture)[-1]["data"]["values"])


def test_any_text_is_drawn() -> None:
    rng = np.random.default_rng(5)
    for most in (0x3000, 0x110000):
        points = rng.integers(0, most, (6, 70))
        names = ["".join(map(chr, line)) for line in points.tolist()]
        strip = Strip.around(names[0], [Row(name, 1.0) for name in short(names[1:3])], names[3])
        check_safe(str(draw(strips(names[4], [strip], names[5], ""), names[0])))


def test_a_fresh_process_draws_the_same() -> None:
    """Also in another order: identifiers within a picture depend on nothing that was drawn before."""
    code = f"import sys; from {__name__} import drawn; sys.stdout.write(drawn(last_first=True))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert told.stdout == drawn(last_first=False)


def drawn(last_first: bool) -> str:
    """Return some pictures with parts that refer to others, drawn in the given order."""
    figures = [figure for name in ("one_cluster-0", "k_cover-0") for figure in figures_of(*release_of(name))]
    order = -1 if last_first else 1
    return "\n".join([draw(figure.picture) for figure in figures[::order]][::order])


@pytest.mark.parametrize("base", [0.0, 1e15, 3.0e18, -3.0e18, 1e-300])
@pytest.mark.parametrize("spread", [0.0, 1.0, 600.0])
def test_values_that_float64_hardly_tells_apart_are_drawn(base: float, spread: float) -> None:
    values = np.array([base, base + spread / 2, base + spread])
    shares = np.array([0.25, 0.5, 0.75])
    line = curve("", Axis.around("x", values.tolist()), Axis.of("share", 0, 1), (values, shares, "quantiles"))
    dots = strips("", [Strip.around("x", [Row("", base, base, base + spread)])], "value", "interval")
    for picture in (line, dots):
        check_safe(str(draw(picture)))
        axis = picture.plots[0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
        places = [row["x"] for layer in layers_of(picture) for row in layer["data"]["values"]]
        assert axis[0] < axis[1] and all(axis[0] <= place <= axis[1] for place in places)


def test_a_group_is_named_in_its_picture() -> None:
    picture = strips("", [Strip.around("x", [Row("", 1.0)])], "value", "")
    assert "Group <b>" in texts(str(draw(picture, "Group <b>")))
