"""Estimators and the call for quantiles are jobs: the same answers, charges and refusals."""

import pickle
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
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
    """Of 10,000 rows at each place; flake rate below 1e-10.

    The noise of a cell's count is below 41, so the first centers lie at the places. The noise of a last
    average is then below 0.01, and 0.04 the error of 60 fits; that of a count is 29, a seventh of the 200.
    """
    rows = np.repeat(PLACES, 10_000, axis=0) + np.random.default_rng(4).normal(0, 1, (30_000, 2))
    fitted = kind(3, bounds=BOUNDS, step=0.01).fit(rows)
    order = np.argsort(fitted.cluster_centers_[:, 0])
    assert np.abs(fitted.cluster_centers_[order] - PLACES).max() < 0.5
    assert np.abs(fitted.counts_ - 10_000).max() < 200
    assert fitted.predict(PLACES).tolist() == order.tolist()
    assert fitted.transform(rows[:5]).shape == (5, 3)
    privacy = fitted.release_.values["privacy"]
    assert (privacy["epsilon"], privacy["delta"], privacy["unit"]) == (1.0, 1e-6, None)
    assert not hasattr(fitted, "labels_")
    assert not any(
        np.shares_memory(rows, value) for value in vars(fitted).values() if isinstance(value, np.ndarray)
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
    assert domain["step"] == 20 / 6553, "a step of the wide column that divides the narrow one, too"
    named = shoal.KMeans(2, bounds={"y": (-10, 10), "x": (-100, 100)})
    assert clone(named).get_params() == named.get_params()
    again = named.fit(pd.DataFrame(rows, columns=["x", "y"]))
    assert (again.release_.values["domain"] | {"columns": 0}) == (domain | {"columns": 0})


@pytest.mark.parametrize(
    ("bounds", "step", "noted"),
    [
        ((0, 100), 100 / 2**16, 0),
        ([(18, 95), (0, 300)], 1 / 218, 0),
        ([(0, 0.3), (-0.1, 0.1)], 0.1 / 21845, 0),
        ([(0, 1), (0, 2**0.5)], 2**0.5 / 2**16, 1),
    ],
)
def test_the_step_divides_the_bounds_where_it_can(bounds: Any, step: float, noted: int) -> None:
    """Otherwise a note says which grid point is the last one."""
    release = shoal.KMeans(2, bounds=bounds, epsilon=10.0).fit(ROWS).release_
    assert release.values["domain"]["step"] == pytest.approx(step, rel=1e-12)
    assert sum("lower plus a multiple" in note for note in release.values["notes"]) == noted


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "bounds is missing: give public bounds"),
        ({"bounds": [(0, 1)] * 3}, "bounds does not fit 2 columns"),
        ({"bounds": "wide"}, "bounds does not fit 2 columns"),
        ({"bounds": 5}, "bounds does not fit 2 columns"),
        ({"bounds": {"x0": (0, 1)}}, r"bounds has the keys \['x0'\]: give a pair for each .*\['x0', 'x1'\]"),
        ({"bounds": {"x0": (0, 1), "x1": 1}}, "bounds does not fit 2 columns"),
        ({"bounds": (0, np.inf)}, "domain.lower is 0.0 and upper inf"),
        ({"bounds": BOUNDS, "n_clusters": 2.5}, "n_clusters is 2.5: give a whole number"),
        ({"bounds": BOUNDS, "n_clusters": "8"}, "n_clusters is '8': give a whole number"),
        ({"bounds": BOUNDS, "n_clusters": True}, "n_clusters is True: give a whole number"),
        ({"bounds": (1, 0)}, "bounds of x0 are 1.0 and 0.0: the lower one must be the smaller one"),
        ({"bounds": ([0, 0], [1, 1])}, r"bounds of x0 are 0.0 and 0.0: .*or such a pair for each column\.$"),
        ({"bounds": BOUNDS, "epsilon": 0.0}, "privacy.epsilon is 0"),
        ({"bounds": BOUNDS, "n_clusters": 0}, "n_clusters is 0: give a whole number from 1 to 1,000"),
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


@pytest.mark.parametrize("ask", ["predict", "transform"])
def test_rows_that_fit_leaves_out_are_told_where_they_are_asked_about(ask: str) -> None:
    fitted = shoal.KMeans(2, bounds=BOUNDS).fit(ROWS)
    for odd in (np.nan, np.inf):
        with pytest.raises(shoal.ShoalError, match=r"^X has a row with a NaN, .*, as fit does\.$"):
            getattr(fitted, ask)([[odd, 1.0]])


def test_no_class_behind_the_estimators_is_named() -> None:
    for kind in (shoal.KMeans, shoal.KMedians):
        with pytest.raises(TypeError, match=r"^KMeans\.__init__\(\) got an unexpected keyword argument 'k'"):
            kind(k=4)
        assert "Centers`" not in str(kind.__doc__)


def test_a_missing_value_of_a_frame_is_no_error() -> None:
    numbers = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.array([True, None], "boolean")})
    for rows in (numbers, pl.DataFrame({"a": [1, None], "b": [0.5, None]})):
        assert shoal.KMeans(2, bounds=BOUNDS).fit(rows).cluster_centers_.shape == (2, 2)


def test_a_masked_value_is_a_missing_one() -> None:
    hidden = np.repeat([[False], [True]], 1000, axis=0)
    rows = np.ma.array(np.repeat([[0.1], [0.9]], 1000, axis=0), mask=hidden)
    found = shoal.KMeans(1, bounds=(0.0, 1.0), epsilon=10.0).fit(rows)
    assert abs(int(found.counts_[0]) - 1000) < 100 and abs(found.cluster_centers_[0, 0] - 0.1) < 0.05
    with pytest.raises(shoal.ShoalError, match="a missing value"):
        found.predict(rows)


def test_two_columns_of_one_name_are_told() -> None:
    with pytest.raises(shoal.ShoalError, match="two columns of one name"):
        shoal.KMeans(2, bounds=BOUNDS).fit(pd.DataFrame(ROWS[:9, :2], columns=["a", "a"]))


def test_quantiles_of_columns_of_any_name() -> None:
    table = pa.table({"age (years)": ROWS[:, 0], "_y": ROWS[:, 1], "é": ROWS[:, 0]})
    bounds = dict.fromkeys(table.column_names, BOUNDS)
    release = shoal.quantiles(table, [0.5], bounds=bounds, step=0.1, epsilon=10.0)
    assert list(release.answers) == ["1-age_years_", "2-_y", "3-_"]
    taken = table.rename_columns(["age (years)", "1-age_years_", "c"])
    release = shoal.quantiles(
        taken, [0.5], bounds=dict.fromkeys(taken.column_names, BOUNDS), step=0.1, epsilon=1
    )
    assert list(release.answers) == ["1-age_years_", "2-1-age_years_", "c"]
    with pytest.raises(shoal.ShoalError, match="bounds has 'é' and 2-_: rename one of the columns"):
        shoal.quantiles(table, [0.5], bounds={"2-_": BOUNDS, "é": BOUNDS}, step=0.1, epsilon=1)


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


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"bounds": (0, 500)},
            r"bounds is \(0, 500\): give a mapping from columns to pairs, such as \{'age'",
        ),
        ({"bounds": {}}, "bounds is {}: give a mapping"),
        ({"bounds": {"x": 5}}, "bounds of x is 5: give a pair"),
        ({"bounds": {"x": "ab"}}, "bounds of x is 'ab': give a pair"),
        ({"bounds": {"x": (0, 1, 2)}}, r"bounds of x is \(0, 1, 2\): give a pair"),
        ({"bounds": {0: (0, 1)}}, "bounds has the key 0: give the name of a column"),
        ({"bounds": {"x": (0, "1")}}, r"domain\.upper"),
        ({"probabilities": 0.5}, r"probabilities is 0.5: give a list, such as \[0.5\]"),
        ({"probabilities": "0.5"}, "probabilities is '0.5': give a list"),
        ({"probabilities": [2]}, "probabilities"),
        ({"unit": 5}, "unit is 5"),
        ({"step": None}, "step"),
        ({"epsilon": "much"}, "privacy.epsilon"),
    ],
)
def test_wrong_arguments_of_quantiles_are_told_in_one_sentence(more: dict, says: str) -> None:
    given: dict = {"probabilities": [0.5], "bounds": {"x": BOUNDS}, "step": 0.1, "epsilon": 1.0} | more
    with pytest.raises(shoal.ShoalError, match=says) as caught:
        shoal.quantiles(pa.table({"x": ROWS[:, 0]}), **given)
    assert "\n" not in str(caught.value)


def test_values_have_the_decimals_of_the_step() -> None:
    rows = pa.table({"x": np.linspace(0, 500, 3001)})
    many = [n / 20 for n in range(1, 20)]
    release = shoal.quantiles(rows, many, bounds={"x": (0, 500)}, step=0.01, epsilon=10.0).answers["x"]
    for name in ("values", "lows", "highs"):
        assert all(value == round(value, 2) for value in release.result[name])


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
    unlike = r"bounds of x1 are 11 times as wide as those of x0\. .*: scale "
    with pytest.warns(UserWarning, match=unlike) as told:
        shoal.KMeans(3, bounds=[(-100, 100), (-1100, 1100)]).fit(ROWS)
    assert "by public numbers. A scaler that is fitted to the rows voids the promise" in str(told[0].message)


def test_a_cast_says_nothing_of_a_row() -> None:
    """A value that overflows when it is cast to float64 makes no warning, and no error."""
    rows = np.array([[0.5], [0.25], [1e300]], dtype=np.longdouble) ** 10
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = shoal.KMeans(1, epsilon=1.0, bounds=(0, 1)).fit(rows)
    assert model.cluster_centers_.shape == (1, 1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that are asked for, each with its rows; none runs."""
    jobs: list[Any] = []

    def run(job: Any, data: Any) -> Any:
        jobs.extend((job, data))
        return SimpleNamespace(result={"centers": [[1.0, 2.0]], "counts": [3]})

    monkeypatch.setattr("shoal.estimators.run", run)
    return jobs


@pytest.mark.parametrize(("kind", "task"), [(shoal.KMeans, "k_means"), (shoal.KMedians, "k_median")])
def test_a_fit_asks_for_what_its_parameters_say(kind: type, task: str, asked: list[Any]) -> None:
    budget = {"epsilon": 0.75, "delta": 3e-7, "neighbors": "replace_one", "ledger": "a/ledger.json"}
    kind(5, bounds={"b": (2, 8), "a": (0, 16)}, step=0.25, **budget).fit(pd.DataFrame({"a": [1.5], "b": [3]}))
    job, rows = asked
    assert job == {
        "task": task,
        "input": {"columns": ["a", "b"], "checks": 0},  # all of epsilon is spent on centers
        "domain": {"lower": [0, 2], "upper": [16, 8], "step": 0.25},
        "privacy": budget,
        "params": {"k": 5},
    }
    assert rows.to_pydict() == {"a": [1.5], "b": [3.0]}


def test_quantiles_ask_for_what_their_parameters_say(asked: list[Any]) -> None:
    budget = {"epsilon": 0.75, "delta": 3e-7, "neighbors": "replace_one", "ledger": "a/ledger.json"}
    bounds = {"age": (0, 120), "hours": (-1, 99)}
    shoal.quantiles("rows.csv", (0.25, 0.5), bounds=bounds, step=0.5, unit="who", **budget)
    job, rows = asked
    questions = {
        name: {
            "task": "quantiles",
            "columns": [name],
            "domain": {"lower": [low], "upper": [high], "step": 0.5},
            "params": {"probabilities": [0.25, 0.5]},
        }
        for name, (low, high) in bounds.items()
    }
    assert job == {"input": {"unit": "who"}, "privacy": budget, "questions": questions}
    assert rows == "rows.csv"
