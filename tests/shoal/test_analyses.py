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


def test_a_correlation_with_a_column_of_one_value_is_no_number() -> None:
    x = np.random.default_rng(1).normal(size=20)
    found = association.correlation(table(x, np.full(20, 0.1), -3 * x))
    assert np.isnan(found[[0, 2]]).all()
    assert found[1] == -1.0


def test_a_block_without_two_complete_rows_has_no_correlation() -> None:
    for column in ([None] * 3, [1.0, None, None], []):
        with pytest.raises(ValueError, match="complete rows are too few for a correlation"):
            association.correlation(table(pa.array(column, pa.float64()), [1.0, 2.0, 3.0][: len(column)]))


@pytest.mark.parametrize(("rows", "features"), [(7, 5), (60, 20), (5000, 4)])
def test_slopes_are_those_of_least_squares_at_any_scale(rows: int, features: int) -> None:
    rng = np.random.default_rng(features)
    x = rng.normal(size=(rows, features)) + rng.normal(size=features) * 30
    y = x @ rng.normal(size=features) + 7 + rng.normal(size=rows)
    exact = np.linalg.lstsq(np.column_stack([x, np.ones(rows)]), y)[0]
    for scale in (np.ones(features), 10.0 ** rng.integers(-9, 10, features), 10.0 ** rng.uniform(140, 150)):
        found = regression.linear(table(*(x * scale).T, y), intercept=True)
        assert np.allclose(found * np.append(scale * np.ones(features), 1), exact, rtol=1e-8)


@pytest.mark.parametrize("far", [1e11, 1e12, 1e13])
def test_slopes_are_those_of_least_squares_far_from_0(far: float) -> None:
    """As for times in nanoseconds: float64 has hundreds of values from here to one more."""
    rng = np.random.default_rng(8)
    x, z = rng.integers(0, 256, 2000) / 256, rng.normal(size=2000)
    y = 3 * x + z + rng.normal(size=2000) / 10
    exact = np.linalg.lstsq(np.column_stack([x, z, np.ones(2000)]), y)[0][:2]
    assert np.allclose(regression.linear(table(x + far, z, y)), exact, rtol=1e-3)


def test_slopes_of_dependent_features_are_the_smallest_ones() -> None:
    """Features 0, 2 and 3 are one, on other scales; and the other one does not vary."""
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(2, 80))
    y = 6 * x + 2 * z
    found = regression.linear(table(x, np.full(80, 0.1), 4 * x, -x / 2, z, y + 5), intercept=True)
    assert np.allclose(found, [2, 0, 0.5, -4, 2, 5])
    assert regression.linear(table(np.full(9, 0.1), np.arange(9.0))).tolist() == [0.0]
    nearly = regression.linear(table(x, x + 1e-4 * z, y))
    assert np.allclose(nearly, [6 - 2e4, 2e4], rtol=1e-6)


def test_values_whose_sum_is_out_of_range_have_no_answer() -> None:
    huge = table([1.6e308, 1.7e308, 1.5e308, 1.0], [1.0, 2.0, 3.0, 4.0])
    for analysis in (regression.linear, association.correlation):
        with pytest.raises(ValueError, match="the sum of a column is out of range"):
            analysis(huge)


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
