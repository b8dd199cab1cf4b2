"""Every release is total: whatever integers the noise makes of its numbers, no round fails.

Noise of a scale that is large beside int64 wraps, and then a noisy number may be any one. A failure would
tell what was drawn.
"""

from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

from core.rounds import parts_of
from tests.core.seeded import SeededNoise
from tests.pipelines.every_plan import blocks
from tests.pipelines.test_every_plan import aggregate, covered, released

ENDS = np.array([-(2**63), 2**63 - 1, 0])


class AnyNumber(SeededNoise):
    """Noise after which a number is an end of int64, 0, or any number, each for a fourth of them."""

    def laplace(self, values: Any, scale: float) -> Any:
        return self._any(np.shape(values))

    def gaussian(self, values: Any, scale: float) -> Any:
        return self._any(np.shape(values))

    def _any(self, shape: tuple[int, ...]) -> Any:
        which, drawn = self._rng.integers(0, 4, shape), self._rng.integers(-(2**63), 2**63 - 1, shape)
        return np.where(which < 3, ENDS[np.minimum(which, 2)], drawn).astype(np.int64)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", covered())
def test_no_round_fails_by_its_noise(name: str) -> None:
    setting = covered()[name]
    rounds, state, noise = setting.plan.rounds, setting.plan.start, AnyNumber(1)
    data = blocks(setting, "even")
    for step in rounds:
        state = released(step, aggregate(step, data, state), state, noise)
    for part in state if parts_of(rounds[-1]) > 1 else (state,):
        found = getattr(part, "state", part)
        result = found.result(setting.job.grid)
        assert result is None or is_dataclass(result)
        if hasattr(found, "table"):
            table = found.table(setting.job.grid)
            assert table is None or len({len(column) for column in table.values()}) <= 1
