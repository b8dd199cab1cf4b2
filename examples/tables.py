"""Write the tables of parameters and promises into the pages of the tasks: `make tables`.

They are made from the code, so the pages are no second source: a test compares them. A table is between a
comment `<!-- parameters: TASK -->` or `<!-- promises: TASK -->` and the next `<!-- end -->`, and so is the
sentence of `<!-- passes: TASK -->`, which says how often the job of `examples/` reads rows. Types, defaults
and meanings come from the schema of the task's jobs. What is allowed is what the check of a job says: a job
of `examples/` gets a value that is not allowed, and the sentence of its error names those that are.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.rounds import looks_of, number_of_passes
from pipelines.errors import JobError
from pipelines.grouped_plan import plan_job
from pipelines.job.job import check_job, check_raw
from pipelines.job.keys import Key, keys_of_task, written
from pipelines.job.text import set_key
from pipelines.tasks import TASKS

EXAMPLES = Path(__file__).resolve().parent
PAGES = EXAMPLES.parent / "docs" / "tasks"

_TABLE = re.compile(r"(<!-- (parameters|promises|passes): (\w+) -->\n).*?(<!-- end -->)", re.S)
_TYPES = ("text", "number", "whole number", "true or false", "mapping", "list")
_KIND_ONLY = re.compile(r"it must be (a whole number|a number|a list|text)\b(?! of| from)")
"""A clause that repeats the type, which has a column of its own."""


def parameters(task: str) -> str:
    """Return the parameters of a task as a table: name, type, default, what is allowed, and what it means."""
    (params,) = (key for key in keys_of_task(task) if key.name == "params")
    job = yaml.safe_load((EXAMPLES / f"{task}.yaml").read_text(encoding="utf-8"))
    needed = {each.path[1]: job["params"][each.path[1]] for each in params.parts if each.required}
    jobs = (job, {**job, "params": needed})
    lines = ["| name | type | default | allowed | meaning |", "|---|---|---|---|---|"]
    for key in _every(params.parts):
        optional = "none" if key.default is None else f"`{written(key.default)}`"
        default = "required" if key.required else optional
        name = key.name.removeprefix("params.")
        cells = (f"`{name}`", _type(key), default, allowed(key, jobs), key.says)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def promises(task: str) -> str:
    """Return the promises of a task as a table, from the docstring of their dataclass."""
    text = inspect.getdoc(TASKS[task].promises) or ""
    before, _, args = text.partition("\n\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", args, re.M)
    lines = [" ".join(before.split()), "", "| name | what is promised |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {_cell(' '.join(says.split()))} |" for name, says in found)])


def passes(task: str) -> str:
    """Return a sentence that says how often the job of a task reads the rows, and by which rounds."""
    job = check_job(yaml.safe_load((EXAMPLES / f"{task}.yaml").read_text(encoding="utf-8")))
    rounds = plan_job(job, bytes(16)).rounds
    looks = {0: "", 1: " after a look"}
    each = [f"`{step.name}`" + looks.get(looks_of(step), f" after {looks_of(step)} looks") for step in rounds]
    return f"The job above passes over the rows {times(number_of_passes(rounds))}: {', '.join(each)}."


def times(number: int) -> str:
    """Return how often."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def allowed(key: Key, jobs: tuple[Mapping[str, Any], ...]) -> str:
    """Return which values of a parameter are allowed, as the errors say that others get.

    Args:
        key: the parameter.
        jobs: jobs that are allowed; where a value meets another problem in one, the next is asked.

    Returns:
        Clauses, or nothing where every value of the type is allowed.
    """
    clauses = []
    for value in _not_allowed(key):
        for job in jobs:
            clause = _clause(key, set_key(job, key.name, value))
            if clause is not None:
                clauses.append(clause)
                break
    return "; ".join(dict.fromkeys(clauses))


def _not_allowed(key: Key) -> Iterator[Any]:
    """Yield values that a parameter of this type rarely allows."""
    lists = key.kind.count("list")
    if key.kind in ("text", "true or false") or key.parts:
        return
    if key.kind == "mapping":
        yield {"none": -1}
    elif lists > 1:  # bounds in the wrong order
        yield [[1, 0]] if lists == 2 else [[[1, 0]]]
    elif lists:
        yield ["none"] if "text" in key.kind else [-1]
        if key.required:
            yield []
    else:
        yield -1


def _clause(key: Key, job: dict[str, Any]) -> str | None:
    """Return what an error of this job says to be allowed for the key, or None."""
    try:
        check_raw(job)
    except JobError as error:
        place, _, clause = str(error).partition("\n")[0].removesuffix(".").partition(": ")
        if not place.startswith(f"{key.name}") or _KIND_ONLY.match(clause):
            return None
        clause = re.sub(r"'(\w+)'", r"`\1`", clause.replace("params.", ""))
        each = "each " if place.startswith(f"{key.name}.none") else ""
        return clause.replace("it must be ", each, 1)
    return None


def _type(key: Key) -> str:
    return key.kind if key.kind.startswith(_TYPES) else "text"  # one of several texts


def _every(keys: tuple[Key, ...]) -> Iterator[Key]:
    for key in keys:
        yield key
        yield from _every(key.parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_tables(page: str) -> str:
    """Return a page with its tables made again from the code."""
    makers = {"parameters": parameters, "promises": promises, "passes": passes}
    return _TABLE.sub(lambda at: f"{at[1]}\n{makers[at[2]](at[3])}\n\n{at[4]}", page)


def main() -> None:
    """Write the tables of all pages."""
    for task in TASKS:
        page = PAGES / f"{task}.md"
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
