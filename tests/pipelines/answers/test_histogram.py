"""What the answer of a histogram says of all of its cells together."""

from typing import Any

import numpy as np

from core.histogram.found import Promises
from pipelines.answers.answer import promises_of
from pipelines.answers.histogram import answer
from tests.pipelines.conftest import Bench


def released(bench: Bench, params: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """Return the release of a histogram."""
    done = bench.run({"task": "histogram", "params": params, "privacy.epsilon": epsilon})
    assert done.exit_code == 0, done.stderr
    return bench.release()


def test_the_noise_of_the_sum_of_all_cells_is_told(bench: Bench) -> None:
    """Of 400 cells it is 20 times that of one: the sum of noise has this standard error, within a tenth."""
    release = released(bench, {"cells": [20, 20], "method": "dense"}, 1.0)
    noise = 20 * promises_of(Promises, release).standard_error
    (said,) = [fact.note for fact in answer(release, None).facts if "sum of" in fact.note]
    assert said == f"sum of the released counts; the standard error of its noise is {noise:.2g}"
    alone = np.sqrt(2 * np.exp(-1)) / (1 - np.exp(-1))  # of geometric noise at epsilon 1
    assert abs(noise / 20 / alone - 1) < 0.1


def test_a_sum_of_some_cells_has_no_such_figure(bench: Bench) -> None:
    """Of a sparse table cells are left out, and the rest is larger than it was."""
    some = released(bench, {"cells": [20, 20], "method": "sparse"}, 50.0)
    said = [fact.note for fact in answer(some, None).facts]
    assert "sum of the released counts" in said
