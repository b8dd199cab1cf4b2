"""Constrained sensitivity against every small database, and tables that keep the known counts."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from core.histogram.constraints import (
    Consistency,
    PolicyGraph,
    check_satisfiable,
    constrained_sensitivity,
    marginal,
    policy_graph,
)
from core.policy import Attribute, Distance, Full, Graph, KnownCount, Partition, Policy

PLANE = (2, 1)  # 3 x 2 values


def values(extents):
    return list(product(*(range(extent + 1) for extent in extents)))


def boxes(*bounds, answer=0):
    """Build known counts from (low, high) pairs; a number stands for a point of a line."""
    ends = [tuple((b,) if isinstance(b, int) else b for b in pair) for pair in bounds]
    return tuple(KnownCount(low, high, answer) for low, high in ends)


def edge_set(secrets, extents):
    """Return the secret pairs, as indices into `values`, by boxes of one value each."""
    corners = np.array(values(extents))
    joined = secrets.joins(corners[:, None], corners[:, None], corners, corners)
    return {(i, j) for i, j in zip(*np.nonzero(joined), strict=True) if i != j}


def points_as_cells(extents):
    return [np.arange(1, extent + 1) for extent in extents]


def sensitivity(policy, extents):
    """L1 sensitivity of the counts of all values."""
    return constrained_sensitivity(policy, points_as_cells(extents), extents)


def inside(known, value):
    return all(low <= v <= high for low, v, high in zip(known.low, value, known.high, strict=True))


def brute_force(secrets, constraints, extents, records, *, edge_moves):
    """Largest L1 change of the full histogram between neighbors: Definition 4.1 over all databases.

    Without `edge_moves` literally; with it, only changes that are secret pairs count as changes at all.
    """
    everything = values(extents)
    secret = edge_set(secrets, extents)
    members = np.array([[inside(known, value) for value in everything] for known in constraints]).T
    groups = {}
    for database in product(range(len(everything)), repeat=records):
        groups.setdefault(tuple(members[list(database)].sum(axis=0)), []).append(database)
    worst = 0
    for group in groups.values():
        for first in (d for d in group if list(d) == sorted(d)):  # records are interchangeable
            changes = {}
            for second in group:
                changed = {(i, b) for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b}
                hidden = frozenset((i, b) for i, b in changed if (first[i], b) in secret)
                if hidden and not (edge_moves and len(hidden) < len(changed)):
                    changes.setdefault(hidden, []).append((frozenset(changed), second))
            for hidden, candidates in changes.items():
                if any(other < hidden for other in changes):
                    continue
                for changed, second in candidates:
                    if not any(other < changed for other, _ in candidates):
                        a, b = Counter(first), Counter(second)
                        worst = max(worst, ((a - b) + (b - a)).total())
    return worst


CASES = [
    # secrets, constraints, extents, records: small enough to try every database
    (Full(), boxes((1, 2)), (3,), 3),
    (Full(), boxes((0, 1), (2, 3)), (5,), 4),
    (Full(), boxes((0, 0), (1, 1), (2, 2), (3, 3)), (3,), 4),
    (Full(), boxes((1, 1), (3, 3)), (4,), 3),
    (Full(), boxes(((0, 0), (0, 1)), ((1, 0), (1, 1)), ((2, 0), (2, 1))), PLANE, 3),
    (Attribute(), boxes(((0, 0), (0, 1)), ((1, 0), (1, 1)), ((2, 0), (2, 1))), PLANE, 3),
    (Attribute(), boxes(((0, 0), (0, 1)), ((1, 1), (2, 1))), PLANE, 3),
    (Distance(1), boxes((1, 2)), (4,), 3),
    (Distance(1), boxes((0, 1), (2, 3)), (4,), 3),
    (Distance(1), boxes((1, 1), (2, 2)), (4,), 3),
    (Distance(2), boxes((0, 0), (3, 4)), (5,), 3),
    (Partition((2,)), boxes((1, 2), (4, 4)), (5,), 3),
    (Partition((3,)), boxes((0, 2)), (5,), 3),
    (Graph((((0,), (3,)), ((1,), (2,)))), boxes((0, 1), (3, 3)), (3,), 4),
]


@pytest.mark.parametrize(("secrets", "constraints", "extents", "records"), CASES)
@pytest.mark.parametrize("semantics", ["literal", "edge_moves"])
def test_no_neighbor_differs_by_more(secrets, constraints, extents, records, semantics):
    policy = Policy(secrets, constraints, semantics)
    true = brute_force(secrets, constraints, extents, records, edge_moves=semantics == "edge_moves")
    assert true <= sensitivity(policy, extents)


MET = [
    (Full(), boxes((1, 2)), (3,), 2, 4),
    (Full(), boxes(((0, 0), (0, 1)), ((1, 0), (1, 1)), ((2, 0), (2, 1))), PLANE, 3, 6),  # a marginal of 3
    (Distance(1), boxes((1, 2), (3, 4)), (5,), 3, 6),  # a component of two rectangles
    (Distance(1), boxes((1, 2), (4, 5)), (6,), 3, 4),  # two components of one
    (Partition((3,)), boxes((0, 2)), (5,), 3, 2),  # no secret pair changes the count
]


@pytest.mark.parametrize(("secrets", "constraints", "extents", "records", "expected"), MET)
def test_the_sensitivity_is_met(secrets, constraints, extents, records, expected):
    """So it could not be halved."""
    policy = Policy(secrets, constraints, "edge_moves")
    assert sensitivity(policy, extents) == expected
    assert brute_force(secrets, constraints, extents, records, edge_moves=True) == expected


def test_literal_neighbors_break_the_bound_for_edge_moves():
    """Line graph on {0, ..., 6}, rectangles [1, 2] and [4, 5], three records: 6 > 2 max(alpha, xi) = 4."""
    known, extents = boxes((1, 2), (4, 5)), (6,)
    graph = policy_graph(Distance(1), known, extents)
    assert (graph.longest_cycle(), graph.longest_path()) == (0, 2)
    literal = brute_force(Distance(1), known, extents, 3, edge_moves=False)
    assert literal == 6
    assert literal > sensitivity(Policy(Distance(1), known, "edge_moves"), extents) == 4
    assert literal <= sensitivity(Policy(Distance(1), known), extents) == 6
    assert brute_force(Distance(1), known, extents, 3, edge_moves=True) <= 4


def test_both_marginals_of_a_table_under_attribute_secrets():
    """Overlapping, so only edge moves are supported; 2 max(size) = 4 of a 2 x 2 table."""
    known = boxes(((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 1), (1, 1)))
    policy = Policy(Attribute(), known, "edge_moves")
    bound = sensitivity(policy, (1, 1))
    assert brute_force(Attribute(), known, (1, 1), 4, edge_moves=True) <= bound == 4
    with pytest.raises(ValueError, match=r"use disjoint boxes, or semantics edge_moves\.$"):
        sensitivity(Policy(Attribute(), known), (1, 1))


def test_changes_of_two_counts_at_once_are_refused():
    nested = boxes((0, 3), (1, 2))
    with pytest.raises(ValueError, match=r"overlapping marginals do: .*Theorem 8\.2.* use disjoint boxes\.$"):
        sensitivity(Policy(Full(), nested, "edge_moves"), (5,))
    assert policy_graph(Distance(1), nested, (5,)) is not None  # no single step leaves both


def test_what_no_secret_pair_moves_costs_nothing():
    """Parts that lie in cells; known counts of whole parts, or changes that are secret pairs alone."""
    cells, halves = [np.array([2, 4])], [np.array([3])]
    whole, across = boxes((2, 3)), boxes((3, 4))
    parts = Partition((2,))
    assert constrained_sensitivity(Policy(parts, whole), cells, (5,)) == 0
    assert constrained_sensitivity(Policy(parts, whole), halves, (5,)) == 2
    assert constrained_sensitivity(Policy(parts, across, "edge_moves"), cells, (5,)) == 0
    assert constrained_sensitivity(Policy(parts, across), cells, (5,)) == 4


def test_a_marginal_is_its_cells():
    cuts, extents = [np.array([2]), np.array([1, 3]), np.array([9])], (3, 4, 20)
    known = marginal(np.array([[1, 2, 3], [4, 5, 6]]), (0, 1), cuts, extents)
    assert known[0] == KnownCount((0, 0, 0), (1, 0, 20), 1)
    assert known[5] == KnownCount((2, 3, 0), (3, 4, 20), 6)
    assert constrained_sensitivity(Policy(Full(), known), cuts, extents) == 2 * 6  # 2 size(C)
    kept = Consistency.of(known, cuts, extents)
    table = kept.keep(np.arange(12).reshape(2, 3, 2), total=21)
    assert table.sum(axis=2).tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError, match=r"shape \(3,\): its cells are \(2,\)"):
        marginal(np.array([1, 2, 3]), (0,), cuts, extents)


def test_many_constraints_cost_at_most_one_record_more_than_they_are():
    lines = boxes(*((2 * i, 2 * i) for i in range(40)))
    for semantics in ("literal", "edge_moves"):
        assert sensitivity(Policy(Full(), lines, semantics), (99,)) == 82
    grid = boxes(*(((i, i, i), (i, i, i)) for i in range(40)))  # too many atoms to cut
    assert sensitivity(Policy(Distance(2), grid), (99, 99, 99)) == 82
    many = boxes(*((i, i) for i in range(1, 12)), (12, 14), (14, 16))  # some overlap
    longest = policy_graph(Distance(2), many, (40,)).longest()
    assert longest == len(many) + 1
    assert sensitivity(Policy(Distance(2), many, "edge_moves"), (40,)) == 2 * longest
    overlapping = (*grid, KnownCount((0, 0, 0), (50, 50, 50), 3))
    with pytest.raises(ValueError, match="overlap"):
        sensitivity(Policy(Distance(2), overlapping, "edge_moves"), (99, 99, 99))


@pytest.mark.parametrize("semantics", ["literal", "edge_moves"])
@pytest.mark.parametrize("secrets", [Full(), Attribute(), Partition((2, 2)), Distance(1)])
def test_a_known_number_of_all_records_takes_no_more_noise(secrets, semantics):
    """Changed records alone, none more or less, leave it as it is."""
    extents = (2, 4)
    assert sensitivity(Policy(secrets, boxes(((0, 0), extents)), semantics), extents) == 2
    parts = Policy(Partition((2,)), boxes((0, 4)), semantics)  # the last one is cut off by the domain
    assert constrained_sensitivity(parts, [np.array([2, 4])], (4,)) == 0


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_constraints_are_covered(data):
    secrets = data.draw(
        st.sampled_from([Full(), Distance(1), Distance(2), Partition((2,)), Partition((3,))]), "secrets"
    )
    extent = data.draw(st.integers(2, 4), "extent")
    ends = st.tuples(st.integers(0, extent), st.integers(0, extent)).map(sorted)
    known = boxes(*data.draw(st.lists(ends.map(tuple), min_size=1, max_size=3), "boxes"))
    for semantics in ("literal", "edge_moves"):
        try:
            bound = sensitivity(Policy(secrets, known, semantics), (extent,))
        except ValueError:
            continue
        assert brute_force(secrets, known, (extent,), 3, edge_moves=semantics == "edge_moves") <= bound


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.randoms(use_true_random=False))
def test_longest_cycle_and_path_are_those_of_every_walk(count, random):
    edges = np.array([[random.random() < 0.4 for _ in range(count + 2)] for _ in range(count + 2)])
    edges[-1], edges[:, -2], edges[-2, -1] = False, False, True
    np.fill_diagonal(edges, False)
    best = {"cycle": 0, "path": 0}

    def walk(here, seen, start):
        for there in np.flatnonzero(edges[here]):
            if there == count + 1 and start == count:
                best["path"] = max(best["path"], len(seen))
            elif there == start:
                best["cycle"] = max(best["cycle"], len(seen))
            elif there not in seen and there < count:
                walk(there, seen | {there}, start)

    for start in range(count + 1):
        walk(start, {start}, start)
    graph = PolicyGraph(edges)
    assert (graph.longest_cycle(), graph.longest_path()) == (best["cycle"], best["path"])


def test_twelve_constraints_are_searched_in_good_time():
    graph = policy_graph(Full(), boxes(*((2 * i, 2 * i) for i in range(12))), (30,))
    assert (graph.longest_cycle(), graph.longest_path()) == (12, 13)
    apart = boxes(*((3 * i, 3 * i) for i in range(12)))  # one step enters one of them, and one leaves it
    assert sensitivity(Policy(Distance(1), apart, "edge_moves"), (40,)) == 4


@pytest.mark.parametrize(
    ("known", "possible"),
    [
        (boxes((1, 2), answer=3) + boxes((1, 2), answer=4), False),
        (boxes((1, 4), answer=3) + boxes((2, 3), answer=4), False),
        (boxes((1, 4), answer=4) + boxes((2, 3), answer=3), True),
        (boxes((0, 1), (1, 2), (0, 0), (2, 2), answer=1) + boxes((0, 2), answer=3), False),
        (boxes((0, 1), (3, 4), answer=5), True),
    ],
)
def test_contradictions_are_refused(known, possible):
    if possible:
        check_satisfiable(known, (5,))
    else:
        with pytest.raises(ValueError, match="contradict each other"):
            check_satisfiable(known, (5,))


def test_counts_that_only_halves_of_records_have_are_refused():
    """Of three places any two have one record together, and no other place has any."""
    pairs = boxes(((0, 0), (1, 1)), ((0, 0), (2, 0)), ((1, 0), (2, 1)), answer=1)
    others = boxes(*((place, place) for place in ((1, 0), (0, 1), (2, 1))), answer=0)
    with pytest.raises(ValueError, match="contradict each other"):
        check_satisfiable(pairs + others, (2, 1))
    check_satisfiable(pairs[1:] + others, (2, 1))


def test_what_is_cut_into_too_many_atoms_is_not_examined():
    """More than 2,048 of them: the counts contradict each other, but to find that out would take long."""
    end = (15, 15, 15)
    inner = boxes(*(((i, i, i), (i, i, i)) for i in range(1, 13)), answer=1)
    check_satisfiable((*inner, KnownCount((0, 0, 0), end, 3)), end)
    with pytest.raises(ValueError, match="contradict each other"):
        check_satisfiable((*inner[:8], KnownCount((0, 0, 0), end, 3)), end)


TABLES = st.lists(st.integers(-20, 40), min_size=8, max_size=8).map(np.array)


@settings(max_examples=100, deadline=None)
@given(TABLES, st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_disjoint_known_counts_are_kept_exactly(noisy, a, b, rest):
    known = boxes((0, 1), answer=a) + boxes((4, 6), answer=b)
    table = Consistency.of(known, points_as_cells((7,)), (7,)).keep(noisy, total=a + b + rest)
    assert (table >= 0).all()
    assert (table[:2].sum(), table[4:7].sum(), table.sum()) == (a, b, a + b + rest)


@settings(max_examples=100, deadline=None)
@given(TABLES.map(np.abs), st.lists(st.integers(-9, 9), min_size=8, max_size=8).map(np.array))
def test_a_disjoint_table_is_off_by_twice_the_noise_at_most(true, noise):
    known = (KnownCount((0,), (2,), int(true[:3].sum())), KnownCount((5,), (6,), int(true[5:7].sum())))
    table = Consistency.of(known, points_as_cells((7,)), (7,)).keep(true + noise, int(true.sum()))
    assert np.abs(table - true).max() <= 2 * np.abs(noise).max() + 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-20, 40), min_size=6, max_size=6).map(np.array))
def test_an_overlapping_table_is_the_nearest(noisy):
    noisy = noisy.reshape(3, 2)
    rows = [KnownCount((i, 0), (i, 1), 4 + i) for i in range(3)]
    columns = [KnownCount((0, j), (2, j), 7 + j) for j in range(2)]
    extents = (2, 1)
    check_satisfiable((*rows, *columns), extents)
    consistency = Consistency.of((*rows, *columns), points_as_cells(extents), extents)
    assert not consistency.disjoint
    table = consistency._dykstra(noisy.astype(float))
    assert np.allclose(table.sum(axis=1), [4, 5, 6], atol=0.02)
    assert np.allclose(table.sum(axis=0), [7, 8], atol=0.02)
    kept = [{"type": "eq", "fun": lambda x, i=i: x.reshape(3, 2)[i].sum() - 4 - i} for i in range(3)]
    kept += [{"type": "eq", "fun": lambda x: x.reshape(3, 2)[:, 0].sum() - 7}]
    best = minimize(
        lambda x: ((x - noisy.ravel()) ** 2).sum(), np.full(6, 2.5), bounds=[(0, None)] * 6, constraints=kept
    )
    assert np.abs(table.ravel() - best.x).max() < 0.1
    assert np.abs(consistency.keep(noisy, 15) - table).max() <= 0.5


def test_a_record_too_few_is_not_given_to_a_cell_of_0():
    """5 and 3 of 7 records become 4.5 and 2.5, and one of both is rounded up."""
    table = Consistency.of(boxes((0, 2), answer=7), points_as_cells((4,)), (4,)).keep(
        np.array([5, 3, 0, 1, 2]), 10
    )
    assert table.tolist() == [5, 2, 0, 1, 2]


@settings(max_examples=20, deadline=None)
@given(TABLES)
def test_cells_outside_of_overlapping_counts_keep_what_is_not_below_0(noisy):
    known = boxes((0, 2), (2, 4), answer=9)
    table = Consistency.of(known, points_as_cells((7,)), (7,)).keep(noisy, total=40)
    assert (table >= 0).all() and (table[5:] == np.maximum(noisy[5:], 0)).all()


def test_counts_of_parts_of_cells_are_left_out():
    cuts = [np.array([3, 6])]
    known = boxes((0, 2), (3, 4), (6, 8), answer=2)
    assert Consistency.of(known, cuts, (8,)).regions == ((slice(0, 1),), (slice(2, 3),))
