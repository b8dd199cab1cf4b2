"""Errors of jobs. Each problem is one sentence: the field, its value, and what is allowed."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError

from core.errors import InvalidValue, ShoalError
from core.nearest import meant
from pipelines.console.printable import CONTROL
from pipelines.nearest import models_in, nearest_path

_TYPES = {
    "string": "text (in quotes, where YAML would read it as something else)",
    "float": "a number",
    "finite": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "mapping": "a mapping (key: value)",
    "dict": "a mapping (key: value)",
    "model": "a mapping (key: value)",
}


_PLACES = {
    "epsilon": "privacy.epsilon",
    "delta": "privacy.delta",
    "neighbors": "privacy.neighbors",
    "policy": "privacy.policy",
    "contributions": "contributions",
    "constraints": "privacy.policy.constraints",
    "distance": "privacy.policy.distance",
    "graph": "privacy.policy.graph",
    "partition": "privacy.policy.partition",
    "semantics": "privacy.policy.semantics",
    "columns": "input.columns",
    "lower": "domain.lower",
    "upper": "domain.upper",
    "step": "domain.step",
    "ball": "domain.ball",
}
"""Dotted keys in a job file of the fields that core names. Parameters of tasks are not listed."""


def place_of(field: str) -> str:
    """Return the dotted key in a job file of a field that core names."""
    name, *below = field.split(".")
    return ".".join([_PLACES[name], *below])


class JobError(ShoalError, ValueError):
    """The job is invalid; no row was read, and nothing was written or spent. One sentence per problem."""

    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class RunError(ShoalError, RuntimeError):
    """A valid job failed while running. The text contains nothing that depends on rows."""


def sentences_of(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one sentence for each problem that pydantic found in a value of `model`.

    A key that is missing is not told where another one was probably mistyped for it.
    """
    problems: dict[str, dict[str, None]] = {}  # a field of a union type has one problem per type
    found = error.errors()
    unknown = [_path(problem) for problem in found if problem["type"] == "extra_forbidden"]
    mistyped = [_instead(path, model) for path in unknown]
    found = [each for each in found if each["type"] != "missing" or tuple(_path(each)) not in mistyped]
    places = [_path(problem) for problem in found]
    for problem, place in zip(found, places, strict=True):
        if any(len(other) > len(place) and other[: len(place)] == place for other in places):
            continue  # the value is of another type of the union, and a problem of that is told
        wrong, allowed = _sentence(problem, model)
        problems.setdefault(wrong, {})[allowed] = None
    return [
        f"{wrong}: it must be {', or '.join(kinds)}." if any(kinds) else f"{wrong}."
        for wrong, kinds in problems.items()
    ]


COMMA = re.compile(r"(?=.*,)[-+]?[0-9][0-9.,]*[0-9]([eE][-+]?[0-9]+)?")
"""A number with a decimal comma, or with one between thousands."""

_POINTS = {
    "a number": "a number with a point, such as 1.5, and without a comma",
    "a whole number": "a whole number, without a comma",
}
"""What is said of a number with a comma."""

_CODE = ("params", "code")
_URL = re.compile(r"://.*[@?%].*", re.DOTALL)
"""A URL that may have credentials: behind a password is an @, before a token a ?, or a % in place of one."""


def check_text(value: Any, path: Sequence[str | int] = ()) -> None:
    """Check that no text in a job has control characters, which could control a terminal.

    The code of a function is shown nowhere, and has lines.

    Raises:
        JobError: a text has one.
    """
    if tuple(path) == _CODE:
        return
    if isinstance(value, str) and CONTROL.search(value):
        raise JobError(
            f"{dotted(path)} is {quoted(value)}: it has control characters, which no text in a job may have."
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if CONTROL.search(str(key)):
                raise JobError(f"The key {dotted([*path, str(key)])} has control characters: leave them out.")
            check_text(item, [*path, key])
    if isinstance(value, list | tuple):
        for i, item in enumerate(value):
            check_text(item, [*path, i])


def _sentence(problem: Any, model: type[BaseModel]) -> tuple[str, str]:
    """Return what is wrong, and what is allowed instead; the second is empty where the first includes it."""
    path = _path(problem)
    name = dotted(path)
    value = quoted(problem["input"])
    kind = problem["type"]
    if kind == "extra_forbidden":
        parent, instead = _model_at(model, path[:-1]), _instead(path, model)
        keys = f"the keys of {dotted(path[:-1])} are" if path[:-1] else "a job's keys are"
        asked = meant(None if instead is None else dotted(instead))
        return f"{name} is not a known key{asked}: {keys} {', '.join(parent.model_fields)}", ""
    # lists of fixed length: all of them in a job are pairs
    if kind == "too_long" or (kind == "missing" and isinstance(path[-1], int)):
        where = path if kind == "too_long" else path[:-1]
        return f"{dotted(where)} is {value}", "a list of two values"
    if kind == "missing":
        parent = _model_at(model, path[:-1])
        below = ""
        if isinstance(path[-1], str) and path[-1] in parent.model_fields:
            own = next(models_in(parent.model_fields[path[-1]].annotation), None)
            below = f", and {name} needs {_needed(own)}" if own is not None and _needed(own) else ""
        return f"{name} is missing: {dotted(path[:-1]) or 'a job'} needs {_needed(parent)}{below}", ""
    if kind == "value_error":
        error = problem["ctx"]["error"]
        if isinstance(error, InvalidValue):
            known_here = path or error.field in model.model_fields
            place = dotted([*path, error.field]) if known_here else place_of(error.field)
            return error.sentence(place).rstrip("."), ""
        return str(error).rstrip("."), ""
    if kind == "literal_error":
        return f"{name} is {value}", problem["ctx"]["expected"]
    if kind == "string_pattern_mismatch":
        return (
            f"{name} is {value}",
            "1 to 128 letters, digits, dots, dashes and underscores, of which the first is a letter or digit",
        )
    allowed = _TYPES.get(kind.split("_")[0])
    if allowed is None:
        return f"{name} is {value}: {problem['msg'][0].lower()}{problem['msg'][1:]}", ""
    comma = isinstance(problem["input"], str) and COMMA.fullmatch(problem["input"])
    return f"{name} is {value}", _POINTS.get(allowed, allowed) if comma else allowed


def _needed(model: type[BaseModel]) -> str:
    """Return the keys that a mapping must have."""
    return ", ".join(key for key, field in model.model_fields.items() if field.is_required())


def _instead(path: Sequence[str | int], model: type[BaseModel]) -> tuple[str, ...] | None:
    """Return the path of the key that was probably meant by an unknown one; None where none is near."""
    return nearest_path(path, model, _model_at(model, path[:-1]).model_fields)


def _path(problem: Any) -> list[str | int]:
    """Return where a problem is, without the names of types in a union."""
    return [part for part in problem["loc"] if not _is_kind(part)]


def _is_kind(part: str | int) -> bool:
    """Return whether a part of a location is the name of a type in a union, and not a key."""
    wraps = ("tuple[", "dict[", "function-")
    return part in ("[key]", "bool", "int", "float", "str") or str(part).startswith(wraps)


def dotted(path: Sequence[str | int]) -> str:
    """Return a field's dotted name, with list positions in brackets: `domain.lower[1]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def without_credentials(text: str) -> str:
    """Return a text cut at a URL that may have a password or a token."""
    return _URL.sub("://...", text)


def quoted(value: object) -> str:
    """Return the repr of a value on one line, cut to 60 characters and at a URL with credentials."""
    text = without_credentials(" ".join(repr(value).split()))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _model_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of the value at `path` in a value of `model`."""
    for part in path:
        if isinstance(part, int):  # the field of the list gave the model of its entries
            continue
        model = next(models_in(model.model_fields[part].annotation))
    return model
