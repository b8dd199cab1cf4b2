"""Plant wrong versions of the code, one at a time, and see which test fails."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutant import Mutant, MutantError, Selection

LONGEST = 300.0
"""Seconds that the tests of one mutant may take."""


@dataclass(frozen=True)
class Outcome:
    """How the tests ended.

    Args:
        failed: the first test that failed; None where all passed.
        trouble: why nothing can be said: the tests did not run to an end.
        seconds: how long they took.
    """

    failed: str | None
    trouble: str | None
    seconds: float


def copy_tree(root: Path, to: Path) -> None:
    """Copy the files that git knows below `root`, as they are in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, to / name)


@contextmanager
def planted(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Put the wrong version in its place, and the right one back."""
    path, wrong = tree / mutant.file, mutant.applied(tree)
    right = path.read_text()
    path.write_text(wrong)
    try:
        yield
    finally:
        path.write_text(right)


def run_tests(tests: Selection, tree: Path) -> Outcome:
    """Run tests of a copied tree, up to the first that fails."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        *tests.nodes,
        "-m",
        "",
        "-x",
        "-q",
        "-rf",
        "--tb=no",
        "--no-header",
    ]
    command += ["-p", "no:cacheprovider", *(["-k", tests.only] if tests.only else [])]
    # Without bytecode on disk, a file that changes twice in a second is read again.
    own = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    env = {**os.environ, **own, "SETTINGS_OF": tests.tasks}
    began = time.monotonic()
    try:
        ran = subprocess.run(
            command, cwd=tree, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, f"the tests took more than {LONGEST:.0f} s", time.monotonic() - began)
    took = time.monotonic() - began
    if ran.returncode == 0:
        return Outcome(None, None, took)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode == 1 and failed:
        return Outcome(failed.group(1), None, took)
    last = (ran.stdout + ran.stderr).strip().splitlines()[-1:] or ["no output"]
    return Outcome(None, f"pytest ended with exit code {ran.returncode}: {last[0]}", took)


Planted = tuple[Mutant | None, Selection]
"""A mutant and its tests; None is the code as it is, on which they must pass."""


def outcomes(root: Path, mutants: Sequence[Mutant], workers: int = 2) -> Iterator[tuple[Planted, Outcome]]:
    """Run the tests of every mutant, each selection of tests first on the code as it is.

    Args:
        root: of the repository.
        mutants: which to plant.
        workers: how many run side by side, each in a copy of its own.

    Raises:
        MutantError: an entry does not fit the code; nothing was run.
    """
    for mutant in mutants:
        mutant.applied(root)
    selections = dict.fromkeys(mutant.tests for mutant in mutants)
    todo: Iterable[Planted] = [*((None, tests) for tests in selections), *((m, m.tests) for m in mutants)]
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(workers):
            copy_tree(root, Path(folder) / str(number))
            trees.put(Path(folder) / str(number))

        def one(each: Planted) -> Outcome:
            tree = trees.get()
            try:
                if each[0] is None:
                    return run_tests(each[1], tree)
                with planted(each[0], tree):
                    return run_tests(each[1], tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(workers) as pool:
            yield from zip(todo, pool.map(one, todo), strict=True)


def verdict(mutant: Mutant | None, outcome: Outcome) -> tuple[bool, str]:
    """Say whether the outcome is as it should be, and what to print."""
    if outcome.trouble:
        return False, outcome.trouble
    if mutant is None:
        return outcome.failed is None, f"fails as it is: {outcome.failed}" if outcome.failed else "passes"
    return outcome.failed is not None, outcome.failed or "NOT CAUGHT"


def report(root: Path, mutants: Sequence[Mutant]) -> int:
    """Print a row for each mutant; return the exit code, 1 where one is not caught or does not fit."""
    began, bad = time.monotonic(), 0
    try:
        for (mutant, tests), outcome in outcomes(root, mutants):
            good, said = verdict(mutant, outcome)
            bad += not good
            if mutant is not None:
                row = f"{mutant.kind:2}", mutant.file, mutant.wrong, said, f"{outcome.seconds:.0f} s"
                print(" | ".join(row), flush=True)
            elif not good:
                print(f"the tests {' '.join(tests.nodes)} -k {tests.only!r} {said}", flush=True)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1
    took = (time.monotonic() - began) / 60
    print(f"{len(mutants)} mutants in {took:.0f} minutes; {bad or 'none'} survived or could not be run.")
    return 1 if bad else 0
