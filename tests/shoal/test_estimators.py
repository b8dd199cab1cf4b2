"""Estimators and the call for quantiles are jobs: the same answers, charges and refusals."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import shoal

BOUNDS = (-100.0, 100.0)
PLACES = np.array([[-50.0, 0.0], [0.0, 50.0], [60.0, -40.0]])
ROWS = np.repeat(PLACES, 1000, axis=0) + np.random.default_rng(4).normal(0, 1, (3000, 2))

NOISE = "two fits draw noise of their own"
LABELS = "labels of training rows are not private, so that none are kept"
EMPTY = "whether there are rows, and rows without a value, is private, so that a fit of them is no error"
OBJECTS = "whether an object is a number is told by its value, so that arrays of objects are refused by type"
UNMET = {
    "check_clustering": LABELS,
    "check_dtype_object": OBJECTS,
    "check_estimators_empty_data_messages": EMPTY,
    "check_estimators_nan_inf": EMPTY,
    "check_fit_idempotent": NOISE,
    "check_pipeline_consistency": NOISE,
    "check_transformer_data_not_an_array": NOISE,
    "check_transformer_general": NOISE,
}
"""Checks of scikit-learn that cannot be met, with the reason."""


@pytest.mark.parametrize("kind", [shoal.KMeans, shoal.KMedians])
def test_scikit_learn_checks_hold_but_for_noise_and_labels(kind: type) -> None:
    """Others than those of `UNMET` would raise. The array API is checked where SciPy is told to have one."""
    checked = check_estimator(kind(3, bounds=BOUNDS), expected_failed_checks=UNMET, on_skip=None)
    states = Counter(check["status"] for check in checked)
    assert states["passed"] >= 38  # of 49: the others are of `UNMET`, or are skipped
    assert {check["check_name"] for check in checked if check["status"] == "xfail"} <= set(UNMET)
    skipped = {check["check_name"] for check in checked if check["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", *UNMET}  # a check of noise is left out by its tag


@pytest.mark.parametrize("kind", [shoal.KMeans, shoal.KMedians])
def test_centers_are_found_and_described(kind: type) -> None:
    fitted = kind(3, bounds=BOUNDS, step=0.01).fit(ROWS)
    order = np.argsort(fitted.cluster_centers_[:, 0])
    assert np.abs(fitted.cluster_centers_[order] - PLACES).max() < 1.0
    assert np.abs(fitted.counts_ - 1000).max() < 200
    assert fitted.predict(PLACES).tolist() == order.tolist()
    assert fitted.transform(ROWS[:5]).shape == (5, 3)
    privacy = fitted.release_.values["privacy"]
    assert (privacy["epsilon"], privacy["delta"], privacy["unit"]) == (1.0, 1e-6, None)
    assert not hasattr(fitted, "labels_")
    assert not any(
        np.shares_memory(ROWS, value) for value in vars(fitted).values() if isinstance(value, np.ndarray)
    )
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.cluster_centers_ == fitted.cluster_centers_).all()
    assert clone(fitted).get_params() == fitted.get_params()


@pytest.mark.parametrize("kind", [shoal.KMeans, shoal.KMedians])
def test_no_value_and_no_number_of_rows_is_an_error(kind: type) -> None:
    """An error would show that some row has no value, or that there is none at all."""
    for odd in (np.nan, np.inf, -np.inf):
        rows = ROWS.copy()
        rows[7, 0] = odd
        assert np.isfinite(kind(3, bounds=BOUNDS).fit(rows).cluster_centers_).all()
    for few in range(4):
        assert kind(3, bounds=BOUNDS).fit(ROWS[:few]).cluster_centers_.shape == (3, 2)


def test_bounds_may_be_those_of_each_column() -> None:
    rows = np.column_stack([ROWS[:, 0], ROWS[:, 1] / 10])
    fitted = shoal.KMeans(2, bounds=[(-100, 100), (-10, 10)], epsilon=10.0).fit(rows)
    domain = fitted.release_.values["domain"]
    assert (domain["lower"], domain["upper"]) == ([-100.0, -10.0], [100.0, 10.0])
    assert domain["step"] == 200 / 2**16


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "bounds is missing: give public bounds"),
        ({"bounds": [(0, 1)] * 3}, "bounds does not fit 2 columns"),
        ({"bounds": "wide"}, "bounds does not fit 2 columns"),
        ({"bounds": (1, 0)}, "domain"),
        ({"bounds": BOUNDS, "epsilon": 0.0}, "privacy.epsilon is 0"),
        ({"bounds": BOUNDS, "n_clusters": 0}, "params.k is 0"),
        ({"bounds": BOUNDS, "neighbors": "friends"}, "privacy.neighbors"),
    ],
)
def test_wrong_parameters_are_told_in_one_sentence(more: dict, says: str) -> None:
    with pytest.raises(shoal.ShoalError, match=says) as caught:
        shoal.KMeans(**more).fit(ROWS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        (np.array([[77.5, "x"]], object), np.array([[77.5, 1.0]], object), "or Python objects: give"),
        (np.array([["77.5", "x"]]), np.array([["77.5", "1"]]), "X has text"),
        (np.array([[10**400, 1]], object), np.array([[1, 1]], object), "X has text"),
        (pl.DataFrame({"a": [77.5], "b": ["x"]}), pl.DataFrame({"a": [77.5], "b": ["1"]}), "X has text"),
        (pd.DataFrame({"a": [77.5, "x"]}), pd.DataFrame({"a": [77.5, 1]}, dtype=object), "X has text"),
        ([[77.5], ["x"]], [[77.5], [1.0]], "X is a list: give an array"),
        (np.array([77.5, 1]), np.zeros(5), "X must have two dimensions"),
        (np.zeros((3, 0)), np.zeros((9, 0)), "X must have two dimensions"),
        (np.array([[77.5 + 1j]]), np.array([[1.0 + 1j]]), "Complex data not supported"),
    ],
)
def test_what_x_must_be_follows_from_types_alone(wrong: Any, right: Any, says: str) -> None:
    """One sentence, the same whatever the values are and however many rows there are, which quotes none."""
    told = set()
    for rows in (wrong, right):
        with pytest.raises(shoal.ShoalError, match=says) as caught:
            shoal.KMeans(2, bounds=BOUNDS).fit(rows)
        assert caught.value.__context__ is None
        told.add(str(caught.value))
    (only,) = told
    assert "77" not in only and "\n" not in only


def test_a_missing_value_of_a_frame_is_no_error() -> None:
    numbers = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")})
    for rows in (numbers, pl.DataFrame({"a": [1, None], "b": [0.5, None]})):
        assert shoal.KMeans(2, bounds=BOUNDS).fit(rows).cluster_centers_.shape == (2, 2)


def test_fits_and_calls_share_a_ledger(tmp_path: Path) -> None:
    ledger = shoal.Ledger.create(2.5, 1e-5, path=tmp_path / "people.json")
    shoal.KMeans(3, bounds=BOUNDS, ledger=ledger).fit(ROWS)
    table = pa.table({"x": ROWS[:, 0]})
    shoal.quantiles(table, [0.5], bounds={"x": BOUNDS}, step=0.1, epsilon=1.0, ledger=ledger)
    assert ledger.left[0] == pytest.approx(0.5)
    with pytest.raises(shoal.ShoalError, match="Nothing was charged"):
        shoal.KMeans(3, bounds=BOUNDS, ledger=ledger.path).fit(ROWS)
    assert len(ledger.values["charges"]) == 2
    assert "Left: epsilon 0.5" in str(ledger)
    assert shoal.Ledger(tmp_path / "people.json").left == ledger.left


def test_a_ledger_without_a_path_ends_with_its_object() -> None:
    ledger = shoal.Ledger.create(1.0)
    place = Path(ledger.path)
    assert place.exists()
    assert ledger.left == (1.0, 0.0)
    del ledger
    assert not place.exists()


def test_wrong_ledgers_are_told(tmp_path: Path) -> None:
    with pytest.raises(shoal.ShoalError, match="does not exist"):
        shoal.Ledger(tmp_path / "none.json")
    with pytest.raises(shoal.ShoalError, match="epsilon"):
        shoal.Ledger.create(-1.0)
    shoal.Ledger.create(1.0, path=tmp_path / "one.json")
    with pytest.raises(shoal.ShoalError, match="exists already"):
        shoal.Ledger.create(9.0, path=tmp_path / "one.json")


def test_quantiles_of_columns_share_the_budget() -> None:
    table = pa.table({"x": ROWS[:, 0], "y": ROWS[:, 1], "who": np.arange(3000) // 3})
    bounds = {"x": BOUNDS, "y": (-80.0, 80.0)}
    release = shoal.quantiles(table, [0.25, 0.75], bounds=bounds, step=0.1, epsilon=10.0, unit="who")
    assert set(release.answers) == {"x", "y"}
    assert release.values["privacy"]["unit"] == "who"
    for name, answer in release.answers.items():
        truth = np.quantile(table.column(name).to_numpy(), [0.25, 0.75])
        assert np.abs(np.array(answer.result["values"]) - truth).max() < 5
    spent = [answer.values["privacy"]["epsilon"] for answer in release.answers.values()]
    assert sum(spent) <= 10.0 * (1 + 1e-9) or release.values["privacy"]["spent"] <= 10.0 * (1 + 1e-9)


def test_columns_have_the_names_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["east", "north"])
    named, plain = (shoal.KMeans(3, bounds=BOUNDS).fit(rows) for rows in (frame, ROWS))
    assert named.release_.values["domain"]["columns"] == ["east", "north"]
    assert plain.release_.values["domain"]["columns"] == ["x0", "x1"]


def test_bounds_of_unlike_ranges_are_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    """The bounds are public, and so is the warning. Ten times as wide is not yet too wide."""
    shoal.KMeans(3, bounds=[(-100, 100), (-1000, 1000)]).fit(ROWS)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"bounds of x1 are 11 times as wide as those of x0\. .*: scale "):
        shoal.KMeans(3, bounds=[(-100, 100), (-1100, 1100)]).fit(ROWS)
