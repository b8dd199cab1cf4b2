"""What is chosen before a run, and what a policy is: parts whose own tests had left something open."""

from tests.mutants.mutant import Mutant, Selection

_POLICY, _COUNTS = "core/policy.py", "core/histogram/constraints.py"
_POLICIES = ("tests/core/test_policies.py",)
_REFUSED = Selection(_POLICIES, only="are_refused")
_TAKEN = Selection(_POLICIES, only="up_to_its_ends")
_REACH = Selection(_POLICIES, only="test_reach")
_KNOWN = ("tests/core/histogram/test_constraints.py",)
_TOTAL = Selection(_KNOWN, only="of_all_records")

POLICIES = (
    Mutant(
        12,
        _POLICY,
        "a part that is wider than the domain reaches beyond it",
        "return sum(min(width - 1, extent) for",
        "return sum(width - 1 for",
        _REACH,
    ),
    Mutant(
        12,
        _POLICY,
        "a distance of several columns is refused",
        "if self.theta > sum(extents):",
        "if self.theta > max(extents):",
        _TAKEN,
    ),
    Mutant(
        12,
        _POLICY,
        "the distance of the whole domain is refused",
        "if self.theta > sum(extents):",
        "if self.theta >= sum(extents):",
        _TAKEN,
    ),
    Mutant(12, _POLICY, "a distance below 0 is taken", "min(self.thetas) < 0 or max", "max", _REFUSED),
    Mutant(12, _POLICY, "distances that hide nothing are taken", " or max(self.thetas) < 1", "", _REFUSED),
    Mutant(
        12,
        _POLICY,
        "distances of other columns are taken",
        "if len(self.thetas) != len(extents):",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge joins points of different spaces",
        "if len(x) != len(y) or x == y:",
        "if x == y:",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge begins below the grid",
        "not 0 <= x <= e for x, e",
        "not x <= e for x, e",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "an edge has other columns than the grid",
        "if len(point) != len(extents) or any(",
        "if any(",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "a known count begins below the grid",
        "low < 0 or high > extent",
        "high > extent",
        _REFUSED,
    ),
    Mutant(
        12,
        _POLICY,
        "a box that begins at the edge has a cell before it",
        "for x in (low, high + 1) if x > 0]",
        "for x in (low, high + 1)]",
        _TAKEN,
    ),
)

COUNTS = (
    Mutant(
        12,
        _COUNTS,
        "a change may move the known number of all records",
        "[axis[axis <= extent] for axis, extent",
        "[axis for axis, extent",
        _TOTAL,
    ),
    Mutant(
        12,
        _COUNTS,
        "known counts are examined however many atoms they make",
        "if boxes.disjoint or boxes.atoms > _ATOMS:\n        return",
        "if boxes.disjoint:\n        return",
        Selection(_KNOWN, only="too_many_atoms"),
    ),
    Mutant(
        12,
        _COUNTS,
        "cells outside of overlapping known counts have fewer than 0 records",
        "(*self.regions, (...,))",
        "self.regions",
        Selection(_KNOWN, only="outside_of_overlapping"),
    ),
    Mutant(
        12,
        _COUNTS,
        "the smallest remainders are rounded up",
        "np.argsort(down - values,",
        "np.argsort(values - down,",
        Selection(_KNOWN, only="a_record_too_few"),
    ),
)
