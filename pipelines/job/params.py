"""Make the pydantic model of a task's parameters from their dataclass in core."""

import inspect
import re
from dataclasses import MISSING, fields
from typing import Any, Literal, Self, get_type_hints

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    create_model,
    model_serializer,
    model_validator,
)

from core.domain import Grid
from pipelines.dates import written_steps
from pipelines.job.policy import JobPart
from pipelines.job.written import TEXTS, written


def params_model(cls: type[Any], choice: str | None, choices: tuple[str, ...]) -> type[BaseModel]:
    """Return the model of a task's parameters: keys, types and descriptions come from the dataclass.

    A field whose metadata has `added` is not dumped where it has its default. `example` in the metadata is a
    value that the schema shows: every required parameter has one, and so has one of several of which one
    must be given.

    Args:
        cls: the dataclass.
        choice: the parameter that names a method of the task, or None.
        choices: the values of that parameter.
    """
    docs = "\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in reversed(cls.__mro__[:-1]))
    lines = re.findall(r"^    (\w+): (.+(?:\n {8,}.+)*)", docs, re.M)
    descriptions = {name: " ".join(text.split()) for name, text in lines}
    hints = get_type_hints(cls, include_extras=True)
    if choice is not None:
        hints[choice] = Literal[choices]
    known: dict[str, Any] = {
        field.name: (
            written(hints[field.name]),
            Field(
                default=... if field.default is MISSING else field.default,
                description=descriptions.get(field.name),
                examples=[field.metadata["example"]] if "example" in field.metadata else None,
            ),
        )
        for field in fields(cls)
    }

    added = {field.name: field.default for field in fields(cls) if field.metadata.get("added")}

    class Params(JobPart):
        @model_serializer(mode="wrap")
        def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
            """Leave out what earlier versions did not know, at its default: the hash of a job stays."""
            return {key: value for key, value in handler(self).items() if (key, value) not in added.items()}

        def build(self, grid: Grid | None = None) -> Any:
            """Return the parameters as their dataclass.

            Args:
                grid: of the job, in whose steps dates become numbers; None where the domain has numbers.
            """
            values = {name: getattr(self, name) for name in known}
            if grid is not None and grid.times is not None:
                values = {
                    name: written_steps(hints[name], value, grid, name) for name, value in values.items()
                }
            return cls(**values)

        @model_validator(mode="after")
        def _check(self, info: ValidationInfo) -> Self:
            if not (info.context or {}).get(TEXTS):  # else the job builds them, which knows the grid
                self.build()
            return self

    doc = inspect.cleandoc(cls.__doc__ or "").split("\n")[0]
    return create_model(cls.__name__, __base__=Params, __doc__=doc, **known)
