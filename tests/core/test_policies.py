"""Policies against brute force over every pair of values, and compositions that refuse."""

from itertools import pairwise, product

import numpy as np
import pytest

from core.neighbors import Neighbors, Sensitivity, compose_in_parallel, compose_in_sequence
from core.policy import Attribute, Distance, DistancePerAxis, Full, Graph, KnownCount, Partition, Policy

LINE = (5,)
PLANE = (3, 2)
SECRETS = {
    LINE: [
        Full(),
        Attribute(),
        Partition((2,)),
        Partition((4,)),
        Partition((9,)),
        Distance(1),
        Distance(3),
        DistancePerAxis((2,)),
        Graph((((0,), (4,)), ((2,), (3,)))),
    ],
    PLANE: [
        Full(),
        Attribute(),
        Partition((2, 1)),
        Partition((3, 2)),
        Distance(1),
        Distance(2),
        DistancePerAxis((1, 0)),
        DistancePerAxis((0, 2)),
        DistancePerAxis((2, 1)),
        Graph((((0, 0), (3, 2)), ((1, 1), (1, 2)))),
    ],
}
CASES = [(extents, secrets) for extents, all_of_them in SECRETS.items() for secrets in all_of_them]
CASES.append(((1, 3), Attribute()))


def points(extents):
    return list(product(*(range(extent + 1) for extent in extents)))


def hides(secrets, x, y):
    """Say from the definition whether (x, y) is a secret pair."""
    match secrets:
        case Full():
            return x != y
        case Attribute():
            return sum(a != b for a, b in zip(x, y, strict=True)) == 1
        case Partition(widths):
            same = all(a // w == b // w for a, b, w in zip(x, y, widths, strict=True))
            return x != y and same
        case Distance(theta):
            return 0 < sum(abs(a - b) for a, b in zip(x, y, strict=True)) <= theta
        case DistancePerAxis(thetas):
            return x != y and all(abs(a - b) <= t for a, b, t in zip(x, y, thetas, strict=True))
        case Graph(edges):
            return (x, y) in edges or (y, x) in edges
    raise AssertionError(secrets)


def edges(secrets, extents):
    return [(x, y) for x, y in product(points(extents), repeat=2) if hides(secrets, x, y)]


def some_cuts(extents):
    """Return every way to cut a line, and some of a plane."""
    every = [[np.flatnonzero(chosen) + 1 for chosen in product([0, 1], repeat=extent)] for extent in extents]
    return product(*every)


def largest_norms(moves):
    """Return the largest norms of some changes of counts."""
    moves = np.array(moves)
    l1, l2, linf = (float(np.linalg.norm(moves, norm, axis=1).max()) for norm in (1, 2, np.inf))
    return Sensitivity(pytest.approx(l1), pytest.approx(l2), pytest.approx(linf))


def cell(point, cuts):
    return tuple(int(np.searchsorted(axis, x, "right")) for x, axis in zip(point, cuts, strict=True))


@pytest.mark.parametrize(("extents", "secrets"), CASES)
def test_histogram_sensitivity_is_the_largest_change_by_a_secret_pair(extents, secrets):
    relation = Neighbors("replace_one", Policy(secrets))
    pairs = edges(secrets, extents)
    for cuts in some_cuts(extents):
        moves = [[-1, 1] if cell(x, cuts) != cell(y, cuts) else [0, 0] for x, y in pairs]
        assert relation.histogram(cuts) == largest_norms(moves)


@pytest.mark.parametrize("secrets", SECRETS[LINE])
def test_cumulative_sensitivity_is_the_largest_change_by_a_secret_pair(secrets):
    size = LINE[0] + 1
    prefixes = np.tri(size, dtype=int).T  # row x: what a record of value x adds to s_1, ..., s_size
    moves = [prefixes[x] - prefixes[y] for (x,), (y,) in edges(secrets, LINE)]
    assert Neighbors("replace_one", Policy(secrets)).cumulative(size) == largest_norms(moves)


def test_sensitivities_without_a_policy():
    replaced, added = Neighbors("replace_one"), Neighbors("add_or_remove_one")
    assert replaced.cumulative(6) == largest_norms([[1] * 5])
    assert added.cumulative(6) == largest_norms([[1] * 6])  # a record of the lowest value
    assert replaced.histogram() == largest_norms([[-1, 1]])
    assert added.histogram() == largest_norms([[1]])


@pytest.mark.parametrize(("extents", "secrets"), CASES)
def test_reach_and_linear_sums(extents, secrets):
    farthest = max(np.abs(np.subtract(x, y)).sum() for x, y in edges(secrets, extents))
    assert secrets.reach(extents) == farthest
    assert Neighbors("replace_one", Policy(secrets)).linear_sum(2.5, extents) == 2.5 * farthest


def test_linear_sums_without_a_policy():
    assert Neighbors("replace_one").linear_sum(2.0, (5,)) == 10
    assert Neighbors("add_or_remove_one").linear_sum(2.0, (5, 3)) == 16


@pytest.mark.parametrize(("extents", "secrets"), CASES)
def test_joins_is_what_the_edges_say_of_disjoint_boxes(extents, secrets):
    pairs = set(edges(secrets, extents))
    rng = np.random.default_rng(0)
    corners = np.sort(rng.integers(0, np.array(extents) + 1, size=(40, 2, len(extents))), axis=1)
    low, high = corners[:, 0], corners[:, 1]
    joined = secrets.joins(low[:, None], high[:, None], low, high)
    seen = set()
    for i, j in product(range(40), repeat=2):
        if ((low[i] > high[j]) | (high[i] < low[j])).any():
            inside = [
                [p for p in points(extents) if (low[k] <= p).all() and (p <= high[k]).all()] for k in (i, j)
            ]
            assert joined[i, j] == any((x, y) in pairs for x, y in product(*inside))
            seen.add(bool(joined[i, j]))
    assert True in seen


def test_whatever_holds_for_replace_one_holds_under_a_policy():
    relation, plain = Neighbors("replace_one", Policy(Distance(1))), Neighbors("replace_one")
    assert relation.changes == plain.changes
    assert relation.histogram() == plain.histogram()


def test_one_cell_counts_a_public_number():
    assert Neighbors("replace_one").histogram([np.empty(0, np.int64)]).l1 == 0
    assert Neighbors("add_or_remove_one").histogram([np.empty(0, np.int64)]).l1 == 1


KNOWN = Policy(Distance(1), (KnownCount((1,), (2,), 3),))


@pytest.mark.parametrize(
    "sensitivity",
    [
        lambda n: n.changes,
        lambda n: n.count(),
        lambda n: n.histogram(),
        lambda n: n.cumulative(6),
        lambda n: n.linear_sum(1.0, LINE),
    ],
)
def test_no_sensitivity_overlooks_constraints(sensitivity):
    with pytest.raises(ValueError, match=r"^constraints is set"):
        sensitivity(Neighbors("replace_one", KNOWN))


def test_sequential_composition_adds_under_one_policy_only():
    near, far = (Neighbors("replace_one", Policy(Distance(theta))) for theta in (1, 2))
    assert compose_in_sequence([(near, 0.25), (near, 0.5)]) == 0.75
    with pytest.raises(ValueError, match="differs between releases"):
        compose_in_sequence([(near, 0.25), (far, 0.5)])


def test_parallel_composition_needs_disjoint_records_and_untied_parts():
    near = Neighbors("replace_one", Policy(Distance(1)))
    assert compose_in_parallel(near, [0.25, 0.5], [range(5), range(5, 9)]) == 0.5
    with pytest.raises(ValueError, match="share a record"):
        compose_in_parallel(near, [0.25, 0.5], [range(5), range(4, 9)])
    with pytest.raises(ValueError, match="2 epsilons for 1 parts"):
        compose_in_parallel(near, [0.25, 0.5], [range(5)])
    tied = Neighbors("replace_one", KNOWN)
    with pytest.raises(ValueError, match="count records of several parts"):
        compose_in_parallel(tied, [0.25, 0.5], [range(5), range(5, 9)])
    assert compose_in_parallel(tied, [0.25], [range(5)]) == 0.25
    whole_parts = Policy(Partition((2,)), (KnownCount((2,), (3,), 3),))
    assert compose_in_parallel(Neighbors("replace_one", whole_parts), [0.1, 0.2], [{1}, {2}]) == 0.2


def test_the_conditions_of_parallel_composition_matter():
    """A constraint across parts forces changes in both: a neighbor costs the sum, not the maximum."""
    known = KnownCount((1,), (1,), 1)
    databases = [d for d in product(range(2), repeat=2) if sum(d) == known.answer]
    (a, b), (c, d) = databases
    loss = abs(a - c) * 0.25 + abs(b - d) * 0.5  # each part releases its sum with noise 1 / epsilon
    assert loss == 0.75


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Neighbors("add_or_remove_one", Policy()), "a policy refines replace_one"),
        (lambda: Partition((1, 1)), "not all 1"),
        (lambda: Partition((0, 3)), "at least 1"),
        (lambda: Distance(0), r"distance is 0"),
        (lambda: DistancePerAxis((-1, 2)), "at least 0, and not all 0"),
        (lambda: DistancePerAxis((0, 0)), "at least 0, and not all 0"),
        (lambda: Graph(()), "has no edges"),
        (lambda: Graph((((1,), (1,)),)), "its ends must be two points"),
        (lambda: Graph((((1,), (1, 2)),)), "its ends must be two points"),
        (lambda: KnownCount((3,), (2,), 1), "the lower at most the upper"),
        (lambda: KnownCount((1,), (2,), -1), "a count is at least 0"),
        (lambda: Policy(semantics="any"), "literal or edge_moves"),
        (lambda: Policy(Distance(6)).check(LINE), r"is 6 steps, larger than the domain's 5"),
        (lambda: Policy(DistancePerAxis((6,))).check(LINE), r"is 6 steps on one axis"),
        (lambda: Policy(DistancePerAxis((1,))).check(PLANE), "1 distances for 2 axes"),
        (lambda: Policy(Partition((2,))).check(PLANE), "1 widths for 2 axes"),
        (lambda: Policy(Graph((((0,), (6,)),))).check(LINE), r"the point \[6\]"),
        (lambda: Policy(Graph((((0,), (-1,)),))).check(LINE), r"the point \[-1\]"),
        (lambda: Policy(Graph((((0,), (1,)),))).check(PLANE), r"the point \[0\]"),
        (lambda: Policy(Full(), (KnownCount((2,), (6,), 1),)).check(LINE), "must lie on the grid"),
        (lambda: Policy(Full(), (KnownCount((-1,), (3,), 1),)).check(LINE), "must lie on the grid"),
        (lambda: Policy(Full(), (KnownCount((2,), (3,), 1),)).check(PLANE), "must lie on the grid"),
    ],
)
def test_bad_policies_are_refused_in_one_sentence(build, message):
    with pytest.raises(ValueError, match=message) as error:
        build()
    assert str(error.value).endswith(".")
    assert not any(a == "." for a, b in pairwise(str(error.value)) if b == " ")


@pytest.mark.parametrize(("extents", "secrets"), [*CASES, (LINE, Distance(5)), (PLANE, Distance(5))])
def test_what_fits_the_grid_is_taken_up_to_its_ends(extents, secrets):
    whole = KnownCount((0,) * len(extents), extents, 0)
    Policy(secrets, (whole,)).check(extents)
    assert [axis.tolist() for axis in whole.cuts] == [[extent + 1] for extent in extents]
