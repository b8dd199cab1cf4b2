"""The keys of a task's jobs as its schema has them: values, defaults, examples, and what they mean."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.job.schema import schema_of_task

_ORDER = ("task", "input", "domain", "params", "group_by", "contributions", "privacy", "output", "run_id")
"""The keys of a job in the order in which a reader meets them."""

_WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "mapping",
}


@dataclass(frozen=True)
class Key:
    """A key of a job.

    Args:
        path: the keys that lead to it, and its own.
        kind: what its value is, in words.
        required: whether every job, or every value around it, must have it.
        default: its value where it is left out; None also where there is none.
        example: a value that it may have; None where the schema has none.
        says: what it means, in a sentence or more.
        parts: the keys of its value, if that is a mapping of known keys.
    """

    path: tuple[str, ...]
    kind: str
    required: bool
    default: Any
    example: Any
    says: str
    parts: tuple["Key", ...] = ()

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)


def keys_of_task(task: str) -> tuple[Key, ...]:
    """Return the keys of the jobs of a task, from its JSON schema.

    Raises:
        JobError: there is no such task.
    """
    schema = schema_of_task(task)
    found = {key.path[0]: key for key in _keys(schema, schema["$defs"], ())}
    return tuple(found[name] for name in _ORDER if name in found)


def _keys(
    schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], above: tuple[str, ...]
) -> Iterator[Key]:
    # of a mapping with alternatives the last one is the ordinary one
    required = {*schema.get("required", ()), *schema.get("anyOf", [{}])[-1].get("required", ())}
    for name, given in schema["properties"].items():
        value, path = _resolved(given, known), (*above, name)
        inner = _mapping(value, known)
        examples = value.get("examples") or [None]
        yield Key(
            path,
            " or ".join(_kinds(value, known)),
            name in required,
            given.get("default"),
            examples[0],
            _sentence(given.get("description") or inner.get("description") or ""),
            tuple(_keys(inner, known, path)) if "properties" in inner else (),
        )


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    place = schema.get("$ref")
    return schema if place is None else known[place.rpartition("/")[2]]


def _mapping(schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the schema of the mapping that a value is, or that the items of a list are; else the schema."""
    for each in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
        found = _resolved(each, known)
        if "properties" in found:
            return found
    return schema


def _kinds(schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what a value may be, in words; null is left out, since it is what a missing key has."""
    schema = _resolved(schema, known)
    if "anyOf" in schema and "type" not in schema:
        each = (kind for part in schema["anyOf"] for kind in _kinds(part, known))
        return list(dict.fromkeys(each))
    if "const" in schema:
        return [str(schema["const"])]
    if "enum" in schema:
        return list(map(str, schema["enum"]))
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items") or {"anyOf": schema.get("prefixItems", [])}
        return ["list" if _resolved(items, known) == {"anyOf": []} else f"list of {_plural(items, known)}"]
    return [_WORDS[kind]] if kind in _WORDS else []


def _plural(items: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> str:
    words = {"number": "numbers", "text": "texts", "whole number": "whole numbers", "mapping": "mappings"}
    kinds = (words.get(kind, kind.replace("list of", "lists of", 1)) for kind in _kinds(items, known))
    return " or ".join(dict.fromkeys(kinds))


def _sentence(text: str) -> str:
    """Return the first paragraph as one line that begins with a capital letter, unless that is a name."""
    first = " ".join(text.partition("\n\n")[0].split())
    begins_with_a_word = first[:1].islower() and first.partition(" ")[0].rstrip(",.").isalpha()
    named = first.partition(":")[0].isidentifier()  # such as `unit: what that value means`
    return f"{first[:1].upper()}{first[1:]}" if begins_with_a_word and not named else first


def show_keys(task: str) -> list[str]:
    """Return the keys of a task as lines: for each its value, whether it is needed, and what it means."""
    keys = sorted(keys_of_task(task)[1:], key=lambda key: key.path != ("params",))
    return [f"{task}: {keys[0].says}", "", *(line for key in keys for line in _lines(key))]


def _lines(key: Key) -> Iterator[str]:
    if key.required:
        use = "required" if key.example is None else f"required, such as {written(key.example)}"
    elif key.default is None or key.parts:
        use = "may be left out"
    else:
        use = f"{written(key.default)} by default"
    yield f"{'  ' * (len(key.path) - 1)}{key.name}: {key.kind}; {use}"
    if key.says and key.path != ("params",):
        yield f"{'  ' * (len(key.path) - 1)}    {key.says}"
    for part in key.parts:
        yield from _lines(part)


def written(value: Any) -> str:
    """Return a plain value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(written, value)) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value).replace("e-0", "e-")


def _text(text: str) -> str:
    """Return a text as YAML has it: in quotes where it would else be read as something else."""
    from pipelines.job.text import is_plain  # reads YAML, which a schema does not need

    return text if is_plain(text) else json.dumps(text, ensure_ascii=False)
