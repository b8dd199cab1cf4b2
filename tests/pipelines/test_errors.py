"""Every field that core can refuse has a place in a job file, and core itself knows no places."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import core
from pipelines.errors import _PLACES
from pipelines.tasks import TASKS

CORE = Path(core.__file__).parent

WITH_PARAMETER = {"core.mechanisms.calibrate_noise"}
"""Shared modules that refuse parameters which only some of the tasks that import them have."""

PATH = re.compile(r"\b(params|privacy|domain|input)\.[a-z]")


def path_of(module: str) -> Path | None:
    path = CORE.parent / f"{module.replace('.', '/')}.py"
    return path if path.exists() else None


@cache
def tree_of(module: str) -> ast.Module:
    path = path_of(module)
    assert path is not None
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(start: str) -> set[str]:
    """Return the modules of core that `start` imports, directly or not, and itself."""
    found: set[str] = set()
    left = [start]
    while left:
        module = left.pop()
        if module in found or path_of(module) is None:
            continue
        found.add(module)
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("core"):
                left += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


@cache
def refused(module: str) -> frozenset[str]:
    """Return the names of all fields that a module refuses, without what lies below them."""
    tree = tree_of(module)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InvalidValue"
    ]
    return frozenset(name.split(".")[0] for call in calls for name in _names(call.args[0], tree))


def _names(field: ast.expr, tree: ast.Module) -> Iterator[str]:
    """Return the values of an expression: constants, f-strings, a loop's variable; `self.choice` has none."""
    if isinstance(field, ast.Constant):
        yield str(field.value)
    elif isinstance(field, ast.IfExp):
        yield from _names(field.body, tree)
        yield from _names(field.orelse, tree)
    elif isinstance(field, ast.JoinedStr):
        yield from _names(field.values[0], tree)
    elif ast.unparse(field) != "self.choice":  # the parameter that names a method, which is checked by itself
        assert isinstance(field, ast.Name), ast.dump(field)
        loops = [
            node for node in ast.walk(tree) if isinstance(node, ast.For) and _first(node.target) == field.id
        ]
        assert loops, f"{field.id} is no variable of a loop"
        for loop in loops:
            assert isinstance(loop.iter, ast.Tuple)
            for entry in loop.iter.elts:
                assert isinstance(entry, ast.Tuple)
                yield from _names(entry.elts[0], tree)


def _first(target: ast.expr) -> str:
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return first.id if isinstance(first, ast.Name) else ""


def folder_of(module: str) -> str:
    return module.rpartition(".")[0]


def own_fields(task: str) -> set[str]:
    return {field.name for field in fields(TASKS[task].params)}


def module_of(task: str) -> str:
    return TASKS[task].task_at.partition(":")[0]


@pytest.mark.parametrize("task", TASKS)
def test_every_refused_field_has_a_place(task):
    """Modules of a task check its parameters; all other modules serve whoever imports them."""
    assert TASKS[task].core.choice in {None, *own_fields(task)}
    folder = folder_of(module_of(task))
    together = set().union(*(own_fields(name) for name in TASKS if folder_of(module_of(name)) == folder))
    for module in imported(module_of(task)):
        if module in WITH_PARAMETER or (module.endswith(".params") and folder_of(module) != folder):
            continue
        known = together if folder_of(module) == folder else own_fields(task)
        assert refused(module) <= known | _PLACES.keys(), module


@pytest.mark.parametrize("module", sorted(WITH_PARAMETER))
def test_a_refused_parameter_of_several_tasks_is_one(module):
    assert refused(module) <= set().union(_PLACES, *(own_fields(task) for task in TASKS))


def test_all_refusals_are_met():
    """No module of core that refuses something is left out above."""
    met = set().union(*(imported(module_of(task)) for task in TASKS))
    modules = [".".join(path.relative_to(CORE.parent).with_suffix("").parts) for path in CORE.rglob("*.py")]
    left = {module for module in modules if refused(module)} - met
    # The first serves ledgers and names their options, the second names the budget of all questions. The
    # fields of the third are those of contributions.guess.
    assert left <= {"core.privacy_filter", "core.questions", "core.left_out"}


def test_core_knows_no_place_in_a_job_file():
    for path in CORE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ]
        docstrings = {id(node.value) for node in documented}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert not PATH.search(node.value), f"{path.name}:{node.lineno}: {node.value}"
