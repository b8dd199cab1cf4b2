"""How much policies let noise shrink."""

from tests.mutants.mutant import Mutant, Selection

_NORMS = Selection(("tests/core/test_policies.py",), only="sensitivit")

NORMS = (
    Mutant(
        12,
        "core/neighbors.py",
        "a replaced record has the same norms in L1 and in L2",
        "l2=math.sqrt(self.changes), linf=1",
        "l2=self.changes, linf=1",
        _NORMS,
    ),
    Mutant(
        12,
        "core/neighbors.py",
        "cumulative counts change by 1 in L2",
        "l2=math.sqrt(changed), linf=min(1, changed)",
        "l2=min(1, changed), linf=min(1, changed)",
        _NORMS,
    ),
)
