"""Fields of a job file that are on an axis: numbers, or dates and durations where the domain is of dates."""

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import (
    PlainSerializer,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from core.marks import Mark

TEXTS = "texts"
"""Key of the context of validation: whether the domain of the job has text."""


def _keep_text(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Keep text, unless the domain is of numbers. What the text says is read when the domain is known."""
    allowed = info.context is None or info.context[TEXTS]
    return value if allowed and isinstance(value, str) else handler(value)


_KEPT = (
    WrapValidator(_keep_text),
    PlainSerializer(lambda value: value),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
)
WrittenPosition = Annotated[float, Mark.POSITION, *_KEPT]
WrittenLength = Annotated[float, Mark.LENGTH, *_KEPT]
_WRITTEN = {Mark.POSITION: WrittenPosition, Mark.BETWEEN: WrittenPosition, Mark.LENGTH: WrittenLength}


def written(kind: Any) -> Any:
    """Return a type whose marked numbers may be text; see `core.marks`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        mark = next((each for each in inner[1:] if each in _WRITTEN), None)
        return Annotated[written(inner[0]), *inner[1:]] if mark is None else _WRITTEN[mark]
    if origin is tuple:
        return tuple[tuple(each if each is Ellipsis else written(each) for each in inner)]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(map(written, inner))]  # noqa: UP007
    return kind
