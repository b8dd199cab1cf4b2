"""Build Shoal by setuptools. A wheel has one package, `shoal`, and so has what pip installs.

In the tree, the folders core, transforms, pipelines and shoal are packages side by side, which import one
another by these names. Such names are common, and an environment may have other packages of them. So a wheel
is built from a copy of the tree where the first three are below shoal, and where import statements say
`shoal.core` for `core`. Lines stay where they are. No other text is changed: no string in the code names its
modules.

An sdist has the tree as it is, and an editable install puts the tree on the path.
"""

import ast
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "shoal"
INNER = ("core", "transforms", "pipelines")
"""Packages of the tree that are below `PACKAGE` in a wheel."""

_BESIDE = ("pyproject.toml", "README.md", "LICENSE")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Build the wheel; see PEP 517. There is no hook for its metadata alone, so nothing is given of it."""
    target = os.path.abspath(wheel_directory)
    with tempfile.TemporaryDirectory() as place:
        copy_as_one(Path(place))
        with chdir(place):
            return build_meta.build_wheel(target, config_settings)


def copy_as_one(to: Path) -> None:
    """Copy what a wheel is built from to a folder, as one package."""
    for name in _BESIDE:
        shutil.copyfile(ROOT / name, to / name)
    for name in (PACKAGE, *INNER):
        place = to / PACKAGE / name if name in INNER else to / PACKAGE
        shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (to / PACKAGE).rglob("*.py"):
        module.write_bytes(rewritten(module.read_bytes()))


def rewritten(source: bytes) -> bytes:
    """Return a module in UTF-8 whose import statements name the inner packages below `PACKAGE`.

    Raises:
        ValueError: a statement such as `import core.budget` binds the name of a package.
    """
    lines = source.splitlines(keepends=True)
    for line, column in sorted(_places(source), reverse=True):  # from the end, so that places stay
        text = lines[line - 1]
        lines[line - 1] = text[:column] + f"{PACKAGE}.".encode() + text[column:]
    return b"".join(lines)


def _places(source: bytes) -> Iterator[tuple[int, int]]:
    """Yield line, from 1, and column in bytes of each name of a module that an import statement gives."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_inner(node.module or ""):
            yield node.lineno, node.col_offset + len("from ")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_inner(alias.name) and alias.asname is None:
                    raise ValueError(f"line {node.lineno}: import {alias.name} as a name, or from it.")
                if _is_inner(alias.name):
                    yield alias.lineno, alias.col_offset


def _is_inner(module: str) -> bool:
    return module.partition(".")[0] in INNER
