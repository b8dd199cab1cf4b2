"""Which numbers of answers, promises and parameters lie on an axis, or are as long as a part of one.

A field says it by its type: `Position` is a point of an axis, `Between` may also lie between two points, and
`Length` is a distance. They stand for floats. On axes of dates such a number is shown as a date or a
duration; all other numbers stay as they are. `translate` is the one function that finds these numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


class Mark(Enum):
    """What a number is on its axis."""

    POSITION = "a point of the grid"
    BETWEEN = "a point that may lie between two points of the grid"
    LENGTH = "a distance"
    AXES = "a tuple with an entry for each axis"


Position = Annotated[float, Mark.POSITION]
Between = Annotated[float, Mark.BETWEEN]
Length = Annotated[float, Mark.LENGTH]
Point = Annotated[tuple[Position, ...], Mark.AXES]
PointBetween = Annotated[tuple[Between, ...], Mark.AXES]

Change = Callable[[Mark, int | None, Any], Any]
"""Takes the mark of a value, the number of its axis, if it has one, and the value; returns another value."""


def translate(kind: Any, value: Any, change: Change, axis: int | None = None) -> Any:
    """Return a value with every marked number in it changed. None stays.

    A number is on the axis of its place in the innermost tuple of `Mark.AXES` that it is in. Outside of all,
    a point is on axis 0, and a distance may be one in all axes. A dataclass whose marks depend on its values
    has a static method `marks`, which takes the values of its fields by name and returns the axis and the
    marks by field.

    Args:
        kind: the type of the value, such as a dataclass with marked fields.
        value: the value, where dataclasses are mappings, as `dataclasses.asdict` returns them. Keys that are
            not fields stay as they are.
        change: what becomes of a marked number.
        axis: of numbers outside of tuples of `Mark.AXES`.
    """
    if value is None:
        return None
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        mark = next((each for each in marks if isinstance(each, Mark)), None)
        if mark is Mark.AXES:
            (item, *_) = get_args(inner)
            return tuple(translate(item, each, change, i) for i, each in enumerate(value))
        return translate(inner, value, change, axis) if mark is None else change(mark, axis, value)
    if get_origin(kind) in (Union, UnionType):
        some = [each for each in get_args(kind) if each is not NoneType]
        return translate(some[0], value, change, axis) if len(some) == 1 else value
    if get_origin(kind) is tuple and isinstance(value, tuple | list):
        items = get_args(kind)
        repeated = len(items) == 2 and items[1] is Ellipsis
        kinds = items[:1] * len(value) if repeated else items
        return tuple(translate(each, item, change, axis) for each, item in zip(kinds, value, strict=True))
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, Mapping):
        return _fields(kind, value, change, axis)
    return value


def _fields(kind: type[Any], value: Mapping[str, Any], change: Change, axis: int | None) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    if hasattr(kind, "marks"):
        axis, marks = kind.marks(value)
        return {
            name: change(marks[name], axis, each) if name in marks and each is not None else each
            for name, each in value.items()
        }
    return {
        name: translate(hints[name], each, change, axis) if name in hints else each
        for name, each in value.items()
    }
