"""A first job of a task, with comments, from the schema of its keys and the columns of a file.

Of the file only names and types of columns are used, which are public; see docs/guarantee.md. No row is read,
and no value or statistic of one. What only somebody who knows the subject can say, such as bounds, is marked.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.console.printable import CONTROL
from pipelines.errors import JobError, check_text
from pipelines.job.counting import COUNTING
from pipelines.job.keys import Key, keys_of_task, written
from pipelines.job.text import FILL_IN
from pipelines.tasks import TASKS, Task

if TYPE_CHECKING:
    import pyarrow as pa

_OFFERED = ("input.unit", "input.keep", "input.where", "privacy.neighbors", "privacy.ledger", "run_id")
"""Keys that may be left out and that a first job shows, beside those of params."""

_SKETCHES = {
    "group_by": "{columns: [city], keys: [Berlin, Paris]}",
    "contributions": "{groups: 3}",  # of rows, one in each group: most tasks take no more
}
"""Whole keys with parts that may be left out and that a first job shows on one line; see docs/groups.md."""

_WIDE = 100
_MOST = 100
"""Columns that are listed."""

_VALUE = re.compile(r"[-+]?[\d.,:/ ]+([eE][-+]?\d+)?")
"""A name in a header that is rather a value: the file probably has no header, and this is a row."""


@dataclass(frozen=True)
class Columns:
    """The columns of a file.

    Args:
        kinds: the name of the type of each, by name; empty where the format has no types.
        axes: those that may be axes: first all that are numbers, then all that are dates, and so on.
        bounds: of an axis like the first one: two ends and a step, as text; None for numbers.
    """

    kinds: Mapping[str, str]
    axes: Sequence[str] = ()
    bounds: tuple[str, str, str] | None = None


_NUMBERS: tuple[Any, Any, Any] | None = None
_DATES = ("2020-01-01", "2020-12-31", "1 day")
_TIMES = ("2020-01-01T00:00:00", "2020-12-31T23:00:00", "1 hour")
_ZONED = ("2020-01-01T00:00:00Z", "2020-12-31T23:00:00Z", "1 hour")


def first_job(task: str, path: str | None = None) -> list[str]:
    """Return the lines of a job of `task` on the file, the folder or the glob at `path`.

    Every value that is to be filled in is `FILL_IN`, with an example in a comment behind it. With the
    examples in their places the job can be planned.

    Raises:
        JobError: there is no such task, the header of the file has values, or no job could name the path.
        InputError: there is no such file, or it cannot be read.
    """
    keys = keys_of_task(task)
    columns = None if path is None else read_columns(path, TASKS[task].times)
    check_text(path, ("input", "path"))
    fixed = {("task",): task, **_of_input(TASKS[task], path, columns)}
    (params,) = (key for key in keys if key.path == ("params",))
    lines = [
        *_comment(f"{task}: {params.says}"),
        *_comment(
            f"Fill in each {FILL_IN}, then see what a run would promise: shoal plan JOB.yaml. Bounds, step, "
            "parameters and epsilon are public: choose them without looking at the rows. All other keys: "
            f"shoal schema {task}."
        ),
    ]
    for key in keys:
        lines += _lines(key, fixed, TASKS[task])
    return lines


def read_columns(path: str, times: bool) -> Columns:
    """Return the columns of the files at `path`, from the schema of the first of them.

    Args:
        path: a file, a folder or a glob.
        times: whether dates and timestamps may be axes.

    Raises:
        JobError: the header of a file has values.
        InputError: there is no such file, or it cannot be read.
    """
    from pipelines.storage.locate import absolute
    from transforms.file_format import WITHOUT_TYPES
    from transforms.open_source import open_files

    files, schemas, _ = open_files(absolute(path))
    schema, form = schemas[0], files[0].format
    names = [name for name in schema.names if not CONTROL.search(name)]
    if form in WITHOUT_TYPES:
        if any(_VALUE.fullmatch(name) for name in names):
            raise JobError(
                f"{path}: the first line has values, but it must name the columns: give the file a header."
            )
        once = [name for name, count in Counter(names).items() if count == 1]  # others cannot be used
        return Columns(dict.fromkeys(once, ""))
    typed = _typed(schema, names, dict(files[0].folders))
    kinds = [(_bounds_of(schema.field(name).type), name) for name in typed]
    found = [each for each in kinds if each[0] != ()]
    for bounds in (_NUMBERS, _DATES, _TIMES, _ZONED):
        axes = [name for kind, name in found if kind == bounds]
        if axes and (times or bounds is None):
            return Columns(typed, axes, bounds)
    return Columns(typed)


def _typed(schema: "pa.Schema", names: Sequence[str], folders: Mapping[str, Any]) -> dict[str, str]:
    times = Counter(schema.names)
    return {
        name: "of folders" if name in folders else str(schema.field(name).type)
        for name in names
        if times[name] == 1
    }


def _bounds_of(kind: "pa.DataType") -> Any:
    """Return examples of bounds and step of a type: None for numbers, empty where it cannot be an axis."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _NUMBERS
    if pa.types.is_date(kind):
        return _DATES
    if pa.types.is_timestamp(kind):
        return _TIMES if kind.tz is None else _ZONED
    return ()


def _of_input(task: Task, path: str | None, columns: Columns | None) -> dict[tuple[str, ...], Any]:
    """Return values and examples of the keys of input and domain, by path."""
    count, kinds = len(task.columns), {} if columns is None else columns.kinds
    axes = list(columns.axes[:count]) if columns is not None else []
    marked = [*axes, *[FILL_IN] * (count - len(axes))]
    examples = [*axes, *[name for name in task.columns if name not in axes]][:count]
    low, high, step = (columns and columns.bounds) or (0, 100, 1)
    ends = [(0, 1) if task.labels and axis else (FILL_IN, FILL_IN) for axis in range(count)]
    shown = [(0, 1) if task.labels and axis else (low, high) for axis in range(count)]
    found: dict[tuple[str, ...], Any] = {
        ("input", "columns"): (marked, examples, _others(kinds, axes)),
        ("domain", "lower"): ([end[0] for end in ends], [end[0] for end in shown], ""),
        ("domain", "upper"): ([end[1] for end in ends], [end[1] for end in shown], ""),
        ("domain", "step"): (FILL_IN, step, ""),
        ("privacy", "epsilon"): 1.0,
        ("privacy", "delta"): 0 if task.pure else 1e-9,
        ("output",): "releases/{run_id}",
    }
    return found if path is None else {**found, ("input", "path"): path}


def _others(kinds: Mapping[str, str], axes: Sequence[str]) -> str:
    """Return a sentence about the columns of a file that are no axes."""
    others = [f"{name} ({kind})" if kind else name for name, kind in kinds.items() if name not in axes]
    more = f" and {len(others) - _MOST} more" if len(others) > _MOST else ""
    which = "The other columns" if axes else "The columns"
    return f"{which} of the file are {', '.join(others[:_MOST])}{more}." if others else ""


_UNLESS_COUNTED = ("input.columns", "domain")
"""Keys that statistics need, unless they only count; see `pipelines.job.counting`."""


def _lines(key: Key, fixed: Mapping[tuple[str, ...], Any], task: Task) -> Iterator[str]:
    """Yield the lines of a key: what it means, and its value."""
    indent = "  " * (len(key.path) - 1)
    known, name = fixed.get(key.path), key.path[-1]
    required = key.required or (task is TASKS[COUNTING] and key.name in _UNLESS_COUNTED)
    marked = required or (key.path[0] == "params" and key.example is not None)
    if key.name in _SKETCHES:
        yield from ("", *_comment(key.says), f"# {name}: {_SKETCHES[key.name]}")
        return
    if not (required or key.path[0] == "params" or key.name in _OFFERED):
        return
    if key.name in ("input.unit", "input.keep") and not task.keeps:
        return
    if key.parts and (marked or key.path == ("params",)):
        yield from ("", *_comment(key.says, indent)) if not indent else _comment(key.says, indent)
        needed = any(part.required or part.example is not None for part in key.parts)
        lines = [f"{indent}{name}:", *(line for part in key.parts for line in _lines(part, fixed, task))]
        yield from lines if needed else (f"# {line}" for line in lines)
        return
    more = known[2] if isinstance(known, tuple) else ""
    says = " ".join(filter(None, (key.says, more)))
    if not indent:
        yield ""
    yield from _comment(says, indent)
    if isinstance(known, tuple):
        yield _value(indent, name, known[0], known[1])
    elif known is not None:
        yield f"{indent}{name}: {written(known)}"
    elif marked:
        yield _value(indent, name, FILL_IN, key.example)
    else:
        default = "" if key.default is None else f" {written(key.default)}"
        yield f"{indent}# {name}:{default}"


def _value(indent: str, name: str, value: Any, example: Any) -> str:
    """Return the line of a value, with an example where it is to be filled in."""
    text = written(value)
    return f"{indent}{name}: {text}" + (f"  # such as {written(example)}" if FILL_IN in text else "")


def _comment(text: str, indent: str = "") -> list[str]:
    """Return a text as the lines of a comment."""
    text = CONTROL.sub("?", text)
    return textwrap.wrap(
        text, _WIDE, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ", break_long_words=False
    )
