"""Every entry of the tables fits the code, and the tables are as broad as they are meant to be."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from pipelines.tasks import TASKS
from tests.mutants.mutant import CLASSES, Mutant
from tests.mutants.tables import MUTANTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.wrong}")
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    wrong = mutant.applied(ROOT)
    if mutant.file.endswith(".py"):  # not a template of a report
        ast.parse(wrong)
    assert all((ROOT / node.split("::")[0]).is_file() for node in mutant.tests.nodes)
    assert set(filter(None, mutant.tests.tasks.split(","))) <= set(TASKS)


def test_every_class_and_every_task_has_mutants() -> None:
    kinds = Counter(mutant.kind for mutant in MUTANTS)
    assert set(kinds) == set(range(1, len(CLASSES) + 1))
    assert min(kinds.values()) >= 3
    assert {task for mutant in MUTANTS for task in mutant.tests.tasks.split(",")} >= set(TASKS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS) >= 60
