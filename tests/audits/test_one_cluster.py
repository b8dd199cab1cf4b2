"""Attack the practical 1-cluster with neighboring databases and the real noise, and bound epsilon from below.

Nearly all of epsilon goes to one round at a time, so that an attack on it can come close: the bound must
not exceed what was promised, and must exceed it when that round's noise is halved (the power of the test).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from core.budget import Budget
from core.domain import Grid
from core.neighbors import Neighbors
from core.noise import Noise
from core.one_cluster.found import Found, NotFound
from core.one_cluster.params import OneCluster
from core.one_cluster.practical.lattice import Placed
from core.one_cluster.practical.locate import Located, Scaled
from core.one_cluster.task import ONE_CLUSTER
from core.rounds import Block
from core.secure_noise import SecureNoise
from tests.core.one_cluster.practical.steps import steps

pytestmark = pytest.mark.audit

EPSILON, DELTA = 1.0, 1e-6
RUNS = 20_000
LINE = Grid((0.0,), (1.0,), 2.0**-10)
PLANE = Grid((0.0, 0.0), (1.0, 1.0), 2.0**-2)  # of few levels, so that a release is fast
LEVEL = 1e-7  # of each one-sided confidence bound: the flake rate of a test is at most 2e-7


@dataclass(frozen=True)
class Halved(Noise):
    """The real noise at half its scale: what a factor of two gone wrong would draw."""

    noise: SecureNoise

    def laplace(self, values, scale):
        return self.noise.laplace(values, scale / 2)

    def gaussian(self, values, scale):
        return self.noise.gaussian(values, scale / 2)

    def select(self, scores, scale):
        return self.noise.select(scores, scale / 2)


def bound(with_record: int, without: int) -> float:
    """Bound ln((p - delta) / q) from below, p and q known from RUNS draws each (Clopper and Pearson)."""
    p = stats.beta.ppf(LEVEL, with_record, RUNS - with_record + 1) if with_record else 0.0
    q = stats.beta.ppf(1 - LEVEL, without + 1, RUNS - without)
    return math.log((p - DELTA) / q) if p > DELTA else -math.inf


def attack(
    name: str,
    share: str,
    target: int,
    state: object,
    extra: tuple[int, ...],
    seen: Callable[[object], bool],
    noise: Noise,
) -> float:
    """Release the named round on two neighbors and bound epsilon by how often `seen` tells them apart."""
    grid = LINE if len(extra) == 1 else PLANE
    params = OneCluster(target=target, shares={share: 1e6})
    plan = ONE_CLUSTER.plan(grid, params, Budget(EPSILON, DELTA), Neighbors("add_or_remove_one"), bytes(16))
    (step,) = [each for each in steps(plan) if each.name == name]
    points = np.tile(np.array(grid.extents) // 2, (40, 1))
    counts = []
    for database in (np.append(points, [extra], axis=0), points):
        block = Block(database, np.arange(len(database), dtype=np.uint64))
        aggregate = step.summarize(block, state)
        if step.floor is not None:
            aggregate = aggregate.above(step.floor)
        counts.append(sum(seen(step.release(aggregate, state, noise)) for _ in range(RUNS)))
    return bound(*counts)


BALL = Located(np.array([512]), 100, 10, np.array([0]))
PLACED = Placed(np.array([512]), 100, 8)
ATTACKS = {
    "count": ("count", "count", 50, PLACED, (512,), lambda s: isinstance(s, Found) and s.count >= 41),
    "count of a fit": ("fit_radius", "count", 800, BALL, (512,), lambda s: s.count >= 41),
    "average": (
        "average_1", "average_1", 800, BALL, (612,), lambda s: isinstance(s, Located) and s.center[0] >= 515
    ),
    "boxes": ("good_radius", "good_radius", 68, None, (512,), lambda s: not isinstance(s, NotFound)),
    "balls": (
        "good_radius", "good_radius", 40, None, (2, 2), lambda s: isinstance(s, Scaled) and s.level == 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_beats_the_promise(name):
    assert attack(*ATTACKS[name], SecureNoise()) <= EPSILON


@pytest.mark.parametrize("name", ["count", "count of a fit", "average"])
def test_halved_noise_would_be_caught(name):
    assert attack(*ATTACKS[name], Halved(SecureNoise())) > EPSILON
