"""Several questions about files of text: columns have the types that the questions use them with."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from pipelines.run import joint_run, run
from tests.engines.golden import Fixed

USES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unit": ({"unit": "name"}, {"keep": "max"}),
    "order": ({"unit": "name"}, {"keep": "last", "order": "t"}),
    "count": ({"count": "t"}, {}),
    "keys": ({}, {"group_by": {"columns": ["name"], "keys": [["000"], ["007"], ["019"]]}}),
    "numbers as keys": ({}, {"group_by": {"columns": ["t"], "keys": [[0], [3]]}}),
}
TYPES: dict[tuple[str, str], dict[str, Any]] = {("rows.csv", "order"): {"types": {"t": "integer"}}}


@pytest.fixture(autouse=True)
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (run, joint_run):
        monkeypatch.setattr(module, "SecureNoise", lambda: Fixed(0, factor=0.0))
        monkeypatch.setattr(module, "secret_salt", lambda: b"0123456789abcdef")


def results(release: shoal.Release) -> Any:
    """Return the result, the table, and those of answers, by name."""
    of_groups = {name: results(each) for name, each in release.answers.items()}
    return release.values.get("result"), str(release.table), of_groups


@pytest.mark.parametrize("use", USES)
def test_columns_of_text_have_the_types_that_questions_use(tmp_path: Path, use: str) -> None:
    """Names are numbers with zeros before them, which are gone where a column is taken for numbers."""
    rng = np.random.default_rng(0)
    names = [f"{number % 20:03}" for number in range(240)]
    rows = pa.table({"t": rng.permutation(240) % 4, "x": rng.integers(0, 11, 240), "name": names})
    pq.write_table(rows, tmp_path / "rows.parquet")
    pyarrow.csv.write_csv(rows, tmp_path / "rows.csv")
    of_input, of_question = USES[use]
    domain = {"lower": [0], "upper": [10], "step": 1}
    asked = {"columns": ["x"], "domain": domain, **of_question}
    questions = {
        "cells": {"task": "histogram", "params": {"cells": [11]}, **asked},
        "middle": {"task": "quantiles", "params": {"probabilities": [0.5]}, **asked},
    }
    found = []
    for name in ("rows.parquet", "rows.csv"):
        job = {
            "input": {"path": str(tmp_path / name), **of_input, **TYPES.get((name, use), {})},
            "privacy": {"epsilon": 2.0, "delta": 1e-6},
            "questions": questions,
            "output": str(tmp_path / f"of {name}"),
        }
        found.append(results(shoal.run(job)))
    assert found[0] == found[1]
    assert str(found[0]).count("count: [[") >= 1
