"""Marked numbers are found wherever they are in an answer, each on its own axis, and nothing else changes."""

from dataclasses import dataclass
from typing import Annotated, Any

from core.marks import Between, Length, Mark, Point, PointBetween, Position, translate


@dataclass(frozen=True)
class Ball:
    center: Point
    radius: Length
    count: float


@dataclass(frozen=True)
class Named:
    name: str
    low: float
    high: float | None

    @staticmethod
    def marks(values: Any) -> tuple[int, dict[str, Mark]]:
        return 4, {"low": Mark.POSITION, "high": Mark.BETWEEN} if values["name"] == "marked" else {}


@dataclass(frozen=True)
class Answer:
    first: Position
    middle: Between | None
    balls: tuple[Ball, ...]
    pair: tuple[Position, float]
    columns: Annotated[tuple[Ball, ...], Mark.AXES]
    each: tuple[Named, ...]
    means: PointBetween | None = None


def changed(mark: Mark, axis: int | None, value: Any) -> Any:
    return mark.name, axis, value


def test_every_marked_number_is_changed_on_its_axis() -> None:
    ball = {"center": (1.0, 2.0), "radius": 3.0, "count": 4.0}
    value = {
        "first": 5.0,
        "middle": 6.0,
        "balls": [ball],
        "pair": (7.0, 8.0),
        "columns": (ball, ball),
        "each": (
            {"name": "marked", "low": 1.0, "high": None},
            {"name": "plain", "low": 1.0, "high": 2.0},
        ),
        "means": (9.0, 10.0),
        "beside": 11.0,
    }
    center = (("POSITION", 0, 1.0), ("POSITION", 1, 2.0))

    def with_radius(axis: int | None) -> dict[str, Any]:
        return {"center": center, "radius": ("LENGTH", axis, 3.0), "count": 4.0}

    assert translate(Answer, value, changed, 0) == {
        "first": ("POSITION", 0, 5.0),
        "middle": ("BETWEEN", 0, 6.0),
        "balls": (with_radius(0),),
        "pair": (("POSITION", 0, 7.0), 8.0),
        "columns": (with_radius(0), with_radius(1)),
        "each": (
            {"name": "marked", "low": ("POSITION", 4, 1.0), "high": None},
            {"name": "plain", "low": 1.0, "high": 2.0},
        ),
        "means": (("BETWEEN", 0, 9.0), ("BETWEEN", 1, 10.0)),
        "beside": 11.0,
    }


def test_what_is_missing_stays_missing() -> None:
    value = dict.fromkeys(("first", "middle", "pair", "columns", "means"), None) | {"balls": (), "each": ()}
    assert translate(Answer, value, changed) == value
    assert translate(Answer, None, changed) is None
    assert translate(Length, 2.0, changed) == ("LENGTH", None, 2.0)
