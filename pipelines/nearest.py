"""The key or the task that was probably meant by a wrong one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from core.nearest import meant, nearest

_FAR = 0.75
"""Least similarity of a mistyped key to one elsewhere in a job."""

Path = tuple[str, ...]
"""The keys that lead to a value in a job."""

_ANSWERED_BY = {
    **dict.fromkeys(("average", "avg", "count", "counts", "mean", "std", "sum", "variance"), "statistics"),
    **dict.fromkeys(("percentile", "percentiles"), "quantiles"),
    **dict.fromkeys(("max", "min"), "minimum"),
    "function": "sample_and_aggregate",
}
"""Tasks that answer what a word asks for, which is not like their names."""


def meant_task(word: str, tasks: Iterable[str]) -> str:
    """Return a question after a word that is no task, to put behind it; empty where no task is near."""
    tasks, answering = list(tasks), _ANSWERED_BY.get(word.lower())
    return meant(answering if answering in tasks else nearest(word, tasks))


def nearest_path(path: Sequence[str | int], model: type[BaseModel], keys: Iterable[str]) -> Path | None:
    """Return the path of the known key that was probably meant by an unknown one.

    It is the key beside it of which it is the plural or the singular, or a key of the same name elsewhere, or
    one of a similar name beside it, or else elsewhere.

    Args:
        path: of the unknown key.
        model: of the whole value.
        keys: the known keys beside it.
    """
    if not path:
        return None
    word, beside = str(path[-1]), tuple(map(str, path[:-1]))
    known, keys = list(dict.fromkeys(paths_of(model))), list(keys)
    number = next((key for key in keys if word in (f"{key}s", key.removesuffix("s"))), None)
    if number is not None:
        return (*beside, number)
    same = [each for each in known if each[-1] == word]
    if same:
        return min(same, key=len)
    close = nearest(word, keys)
    if close is not None:
        return (*beside, close)
    far = nearest(word, [each[-1] for each in known], _FAR)
    return None if far is None else min((each for each in known if each[-1] == far), key=len)


def paths_of(model: type[BaseModel], above: Path = ()) -> Iterator[Path]:
    """Yield the path of every key of a model, and of the models in it."""
    for key, field in model.model_fields.items():
        yield (*above, key)
        for inner in models_in(field.annotation):
            yield from paths_of(inner, (*above, key))


def models_in(kind: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in a type: itself, those of a union, or of the items of a tuple."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    else:
        for inner in get_args(kind):
            yield from models_in(inner)
