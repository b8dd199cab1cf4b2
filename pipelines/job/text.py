"""Read the text of a job file as YAML 1.2, where 1e-6 is a number and 2026-11-20 is text."""

import copy
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from pipelines.errors import JobError, without_credentials
from pipelines.job.function_file import carry_function
from pipelines.storage.locate import absolute, open_file

FILL_IN = "FILL_IN"
"""What stands in a job that `shoal init` printed for a value that is to be filled in."""

_INTEGERS_BELOW = 2**53  # beyond it, float64 may not represent the number exactly
_MOST_BYTES = 1_000_000
MOST_LEVELS = 20
_TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2 (section 10.3). Keys must be unique, and a run id is always text.

    Tags, anchors and aliases are refused, because they make a value differ from its text.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    _level = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node; refuse tags, anchors, aliases and deep nesting."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refusal("anchors and aliases (& and *) are not allowed: write the value out", event)
        if getattr(event, "tag", None) is not None:
            raise _refusal("tags such as !!set are not allowed: leave the tag out", event)
        if self._level == MOST_LEVELS:
            raise _refusal(f"values may be nested {MOST_LEVELS} levels deep, and no deeper", event)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuse keys that are not text, and duplicate keys; YAML would keep the last one."""
        seen = set()
        for key, value in node.value:
            if key.tag != _TEXT:
                raise _refusal("a key must be text, if necessary in quotes", key)
            if key.value in seen:
                raise _refusal(f"the key {key.value} is given twice", key)
            seen.add(key.value)
            if key.value == "run_id":
                _as_text(value)
        return super().construct_mapping(node, deep)


def _refusal(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    """Return a float, or an int for text such as 1e3, so that it is allowed where an integer is."""
    text = node.value.lower().replace(".inf", "inf").replace(".nan", "nan")
    value = float(text)
    exact = "e" in text and value.is_integer() and abs(value) < _INTEGERS_BELOW
    return int(value) if exact else value


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    try:
        return int(node.value)
    except ValueError:  # Python limits the number of digits
        raise _refusal(f"a number of {len(node.value)} digits is too long", node) from None


def _as_text(node: yaml.Node) -> None:
    if isinstance(node, yaml.ScalarNode) and node.tag != "tag:yaml.org,2002:null":
        node.tag = _TEXT


for _tag, _pattern, _starts in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"({_pattern})$"), _starts)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)


def read_job_text(path: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read the job file at `path`, a URL or local, apply the overrides, and read the file of a function.

    Args:
        path: the YAML file.
        overrides: each `dotted.key=value`, with a YAML value.

    Raises:
        JobError: a file is missing, too large or not valid, or an override is malformed.
    """
    job = parse_job(_read(path), f"The job file {path}")
    for override in overrides:
        override_key(job, override)
    carry_function(job, absolute(path).rpartition("/")[0])
    return job


def parse_job(text: str, where: str) -> dict[str, Any]:
    """Return the mapping in the text of a job file; `where` names it in errors.

    Raises:
        JobError: the text is too long, or not valid YAML, or not a mapping.
    """
    if len(text) > _MOST_BYTES:
        raise JobError(f"{where} has {len(text):,} characters: it may have at most {_MOST_BYTES:,}.")
    job = _parse(text, where)
    if not isinstance(job, dict):
        raise JobError(f"{where} is not a mapping: its first line should be like `task: one_cluster`.")
    return job


def check_filled(raw: Mapping[str, Any]) -> None:
    """Check that every marked value of a job was filled in.

    Raises:
        JobError: one was not.
    """
    left = list(dict.fromkeys(_marked(raw, "")))
    if left:
        raise JobError(
            f"{', '.join(left)} {'is' if len(left) == 1 else 'are'} {FILL_IN}: give a value in its place."
        )


def _marked(value: Any, name: str) -> Iterator[str]:
    if value == FILL_IN:
        yield name
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _marked(item, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _marked(item, name)


def is_plain(text: str) -> bool:
    """Return whether a text needs no quotes in a job file, also as an item of a list in brackets."""
    if (
        not re.fullmatch(r"[\w./{}$-][\w ./{}$:*-]*", text)
        or text.startswith(("{", "-"))
        or text != text.strip()
    ):
        return False
    try:
        return bool(_parse(f"[{text}]", "") == [text])
    except JobError:
        return False


def _read(path: str) -> str:
    """Return the text of a regular file. A pipe could block, and a device might never end."""
    folder, name = open_file(absolute(path))
    size = folder.size(name)
    if size is not None and size > _MOST_BYTES:
        raise JobError(f"The job file {path} has {size:,} bytes: it may have at most {_MOST_BYTES:,}.")
    try:
        data = folder.read(name)
        if data is None:
            raise JobError(f"The job file {path} does not exist.")
        return data.decode()
    except (OSError, UnicodeDecodeError):
        raise JobError(f"The job file {path} cannot be read: give a YAML file in UTF-8.") from None


_ADVICE = {
    r"'\t' that cannot start": "write spaces in place of tabs",
    "that cannot start": "put the text in quotes",
    "but got '{'": "put a text with braces in quotes",
    "mapping values are not allowed": "put a text with a colon in quotes, or look how far lines are indented",
}
"""What helps against a problem that PyYAML tells in terms of its scanner."""


def _parse(text: str, where: str, key: str = "") -> Any:
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if key == "run_id" and node is not None:
            _as_text(node)
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        helps = next((f"; {advice}" for sign, advice in _ADVICE.items() if sign in problem), "")
        raise JobError(f"{where} is not valid YAML:{place} {problem}{helps}.") from None
    except yaml.reader.ReaderError as error:
        raise JobError(
            f"{where} is not valid YAML: it has the control character U+{error.character:04X}."
        ) from None
    except (yaml.YAMLError, ArithmeticError, ValueError):
        raise JobError(f"{where} is not valid YAML.") from None
    finally:
        if loader is not None:
            loader.dispose()


_WITH_HASH = re.compile(r"(^|\s)#")
"""What YAML would take for the begin of a comment in a text without quotes."""

_BEGINS = "'\"[{|>&*!"
"""Characters with which a value begins that is no text without quotes."""


def override_key(job: dict[str, Any], override: str) -> None:
    """Set a key of a job as `--set` says.

    Args:
        job: is changed.
        override: `dotted.key=value`, with a YAML value. A `#` in a text without quotes begins no comment.

    Raises:
        JobError: the override is malformed.
    """
    name, equals, text = override.partition("=")
    if not (equals and text.strip()):
        raise JobError(f"--set {override} is not an override: give key=value, such as privacy.epsilon=2.")
    where = f"--set {without_credentials(override)}"
    place, key = _below(job, name, where)
    value, mark = _parse(text, where, key), _WITH_HASH.search(text)
    before = text[: mark.start()].strip() if mark and text.strip()[0] not in _BEGINS else None
    place[key] = (
        text.strip() if before is not None and value in (before, None) and before != "null" else value
    )


def set_key(job: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return a copy of a job with the value of a dotted key.

    Raises:
        JobError: the key is malformed, or below a value that is not a mapping.
    """
    changed = copy.deepcopy(dict(job))
    place, key = _below(changed, name, name)
    place[key] = value
    return changed


def _below(job: dict[str, Any], name: str, where: str) -> tuple[dict[str, Any], str]:
    """Return the mapping that a dotted key is in, and the last part of the key; missing mappings are made.

    A key of the job may have dots itself, as names of questions do: the longest one that is there is taken.
    """
    *parents, key = name.strip().split(".")
    if not all([*parents, key]):
        raise JobError(f"{where} is not an override: give key=value, such as privacy.epsilon=2.")
    if len(parents) >= MOST_LEVELS:
        raise JobError(f"{where}: values may be nested {MOST_LEVELS} levels deep, and no deeper.")
    place: Any = job
    while parents:
        known = (".".join(parents[:count]) for count in range(len(parents), 0, -1))
        parent = next((each for each in known if each in place), parents[0])
        del parents[: parent.count(".") + 1]
        inner = {} if place.get(parent) is None else place[parent]
        if not isinstance(inner, dict):
            raise JobError(f"{where}: {parent} is not a mapping, so nothing can be set below it.")
        place[parent] = place = dict(inner)  # the same mapping may stand elsewhere in the job, too
    return place, key
