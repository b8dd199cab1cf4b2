"""Lloyd's iteration on noisy sums (SuLQ; Blum, Dwork, McSherry and Nissim 2005), also under policies."""

from functools import cached_property
from typing import ClassVar

from core.budget import Mechanism
from core.centers.center_counts import OF_COUNTS, SHARE, CountNearest
from core.centers.found import Centers, Promises
from core.centers.iteration import Iteration, scattered
from core.centers.params import KCenters
from core.centers.parts import PartAverage, PartCounts, Parts
from core.centers.solver import Solver
from core.centers.space import Space
from core.draws import Additive, Charged, Gaussian, Laplace, charged
from core.errors import InvalidValue
from core.mechanisms.stability import StabilityHistogram
from core.neighbors import Neighbors
from core.policy import Partition
from core.rounds import State
from core.task import Accuracy, Method

_ITERATIONS = 6
_COUNT, _SPREAD = 0.15, 0.05  # parts of what an iteration costs
_SOLVER = Solver(2, starts=4, iterations=50)  # there may be as many parts as records


class Lloyd(Method[KCenters]):
    """Lloyd's iteration on noisy sums. A distance or partition policy makes the noise smaller.

    Under a partition policy the counts of the parts are not secret. So k-means of the parts' middles,
    weighted by these counts, needs no noise. By default one noisy average improves these centers. Without a
    partition policy, by default 6 iterations start from public centers. `share` is the zCDP parameter rho
    that all draws cost together. If delta is 0, all noise is Laplace noise, and `share` is the part of
    epsilon that its draws cost.
    """

    name: ClassVar[str] = "lloyd"
    uses_policy: ClassVar[bool] = True

    def refusal(self) -> InvalidValue | None:
        """See `Method.refusal`."""
        shares = self.setting.params.shares
        if not shares:
            return None
        return InvalidValue("shares", shares, "the iterations of lloyd share the budget evenly", "is set")

    def start(self) -> State:
        """See `Method.start`."""
        return self._scattered if self._parts is None else None

    def rounds(self, share: float) -> tuple[Charged, ...]:
        """See `Method.rounds`, and each round for its sensitivities."""
        if self._parts is None:
            return *self._iterations(share), self._count(share)
        counts = StabilityHistogram(what="counts of parts", scale=0.0, threshold=1, l1=0)
        first = PartCounts(self._parts, _SOLVER, self.setting.params.k, self._scattered, counts)
        return first, *self._part_averages(self._parts, share)

    def charges(self, share: float) -> tuple[Mechanism, ...]:
        """See `Method.charges`: the counts of parts cost nothing."""
        if self._parts is None:
            return charged((*self._iterations(share), self._count(share)))
        return charged(self._part_averages(self._parts, share))

    def accuracy(self, share: float) -> Accuracy:
        """See `Method.accuracy`.

        The error is how far one row can move a center's sum in the first iteration, in data units. Under a
        partition policy the noise hides a move within a part, so the error is the diameter of a part.
        Otherwise it is the domain's radius, because rows that far away pull the public centers.
        """
        if self._parts is not None:
            note = (
                "Under this policy the number of rows in each part is not secret, so counts are exact. They "
                "are those of the parts whose middles were nearest to a center before its last move."
            )
            return Accuracy(Promises(count_error=None), self._space.length(self._parts.diameter), (note,))
        error = self._count(share).error(self.setting.params.failure)
        return Accuracy(
            Promises(error), self._space.length(self._space.reach), tightness={"count_error": OF_COUNTS}
        )

    @cached_property
    def _space(self) -> Space:
        return Space(self.setting.grid)

    @cached_property
    def _parts(self) -> Parts | None:
        """The parts of a partition policy; None under another policy, or if there are too many to number."""
        secrets = self.setting.neighbors.secrets
        if not isinstance(secrets, Partition):
            return None
        parts = Parts(self._space, secrets)
        return parts if parts.can_be_numbered else None

    @cached_property
    def _scattered(self) -> Centers:
        return scattered(self._space, self.setting.params.k)

    @property
    def _pure(self) -> bool:
        """Whether the budget pays for Laplace noise only."""
        return self.setting.budget.delta == 0

    def _noise(self, what: str, part: float, sensitivity: float) -> Additive:
        """Return the draw that costs a part of what `share` measures."""
        if self._pure:
            return Laplace.of(what, part * self.setting.budget.epsilon, sensitivity)
        return Gaussian.of(what, part, sensitivity)

    def _count(self, share: float) -> CountNearest:
        changed = Neighbors(self.setting.neighbors.name).histogram()
        noise = self._noise("counts", share * SHARE / (1 + SHARE), changed.l1 if self._pure else changed.l2)
        return CountNearest(self._space, self.setting.params.k, noise)

    def _iterations(self, share: float) -> tuple[Iteration, ...]:
        names = [f"iteration_{i + 1}" for i in range(self.setting.params.iterations or _ITERATIONS)]
        each = share / (1 + SHARE) / len(names)
        sums = self._noise("sums, per unit of their sensitivity", (1 - _COUNT - _SPREAD) * each, 1)
        shares = self._noise("shares, per unit of their sensitivity", _COUNT * each, 1)
        spread = self._noise("spread", _SPREAD * each, 1)
        given, grid = self.setting.neighbors, self.setting.grid
        relation, reach = Neighbors(given.name), given.secrets.reach(grid.extents) << self._space.bits
        return tuple(Iteration(self._space, relation, reach, sums, shares, spread, name) for name in names)

    def _part_averages(self, parts: Parts, share: float) -> tuple[PartAverage, ...]:
        names = [f"average_{i + 1}" for i in range(self.setting.params.iterations or 1)]
        diameter = parts.l1_diameter if self._pure else parts.diameter
        sums = self._noise("sums", share / len(names), max(1.0, diameter))
        counts = Gaussian(what="counts", scale=0.0, sensitivity=0.0)
        return tuple(PartAverage(parts, self.setting.params.k, sums, counts, name) for name in names)
