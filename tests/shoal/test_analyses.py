"""Ready analyses: the order of what they return, and what they leave out."""

import math

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from shoal.analyses import association, clusters, regression
from shoal.analyses.rows import complete, features_and_target


def table(*columns: object) -> pa.Table:
    return pa.table({f"c{i}": pa.array(column, from_pandas=True) for i, column in enumerate(columns)})


def test_correlations_of_four_columns_are_in_order_of_their_pairs() -> None:
    x = np.random.default_rng(1).normal(size=(4, 60)).cumsum(axis=0)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    found = association.correlation(table(*x))
    assert np.allclose(found, [np.corrcoef(x[one], x[other])[0, 1] for one, other in pairs])
    assert len(set(np.round(found, 6))) == 6


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_three_centers_are_in_the_order_of_their_anchors(order: tuple[int, ...]) -> None:
    """With three of them, an order and its inverse may differ."""
    anchors = np.array([[0.0, 0.0], [5.0, 1.0], [9.0, 7.0]])
    centers = anchors + 0.25
    found = clusters.match(centers[[*order]], anchors.tolist())
    assert np.array_equal(centers[[*order]][found], centers)


def test_centers_without_anchors_are_in_the_order_of_their_first_column() -> None:
    centers = np.array([[2.0, 1.0], [1.0, 9.0], [1.0, 8.0]])
    assert clusters.match(centers, None).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("labels", "cut"),
    [
        ([0, 0, 1], 6.0),
        ([0, 1, 1], 1.0),
        ([1, 0, 1], math.nextafter(0.0, -1)),  # of two best ones the lowest
        ([1, 1, 1], math.nextafter(0.0, -1)),
        ([0, 0, 0], 10.0),
    ],
)
def test_a_threshold_is_in_the_middle_between_two_rows(labels: list[int], cut: float) -> None:
    assert association.threshold(table([0.0, 2.0, 10.0], np.array(labels, float))) == cut


@pytest.mark.parametrize("penalty", [0.25, 100.0])
def test_a_penalty_makes_slopes_smaller(penalty: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 2))
    label = x @ [2.0, -1.0] + rng.logistic(size=80) > 0
    fitted = LogisticRegression(C=1 / penalty).fit(x, label)
    expected = [*fitted.coef_[0], *fitted.intercept_]
    found = regression.logistic(table(*x.T, label.astype(float)), intercept=True, penalty=penalty)
    assert np.allclose(found, expected, atol=1e-3)


def test_rows_with_any_value_that_is_no_number_are_left_out() -> None:
    rows = table([1.0, None, 3.0, math.inf, 5.0], [1.0, 2.0, math.nan, 4.0, 6.0])
    assert complete(rows).tolist() == [[1.0, 1.0], [5.0, 6.0]]
    with pytest.raises(ValueError, match="2 complete rows are too few for 2 columns"):
        features_and_target(rows)
