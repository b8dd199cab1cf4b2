"""How much policies let noise shrink, and how a job's policy is read."""

from tests.mutants.mutant import Mutant, Selection

_NORMS = Selection(("tests/core/test_policies.py",), only="sensitivit")
_JOB, _OF_JOB = "pipelines/job/policy.py", Selection(("tests/pipelines/job/test_policy.py",))

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

READ = (
    Mutant(
        12,
        _JOB,
        "parts of a narrow step are lengths",
        "> _CLOSE * grid.step",
        "> _CLOSE",
        _OF_JOB,
    ),
)
