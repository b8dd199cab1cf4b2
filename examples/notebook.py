"""Run the cells of a notebook in order, and keep what they show, as text.

`make gallery` writes the outputs of `first_answers.ipynb` by it, and a test runs its cells. It is no kernel:
a cell is plain Python, whose last expression is shown.
"""

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parent / "first_answers.ipynb"


def run_cells(notebook: dict[str, Any]) -> list[Any]:
    """Run all cells of code and return what each shows: the value of its last expression, or None."""
    names: dict[str, Any] = {}
    return [_run("".join(cell["source"]), names) for cell in cells_of_code(notebook)]


def cells_of_code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that are code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _run(source: str, names: dict[str, Any]) -> Any:
    body = ast.parse(source).body
    shown = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
    return None if shown is None else eval(compile(shown, NOTEBOOK.name, "eval"), names)


def output(value: Any, number: int) -> dict[str, Any]:
    """Return a value as the output of a cell, as text alone: reports belong into notebooks that run."""
    lines = [line.rstrip() for line in repr(value).strip("\n").splitlines()]
    text = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    return {
        "data": {"text/plain": text},
        "execution_count": number,
        "metadata": {},
        "output_type": "execute_result",
    }


def write(path: Path = NOTEBOOK) -> None:
    """Run a notebook and write its outputs into it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = run_cells(notebook)
    for number, (cell, value) in enumerate(zip(cells_of_code(notebook), shown, strict=True), start=1):
        cell["execution_count"] = number
        cell["outputs"] = [] if value is None else [output(value, number)]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
