"""Estimators of scikit-learn and a call for quantiles: short ways to frequent jobs."""

import math
import re
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted, validate_data

from core.centers.params import MAX_K
from pipelines.errors import JobError, quoted
from pipelines.job.questions import NAME, QUESTIONS
from shoal.calls import run
from shoal.data import Data
from shoal.ledger import Ledger
from shoal.shown import Release

__all__ = ["KMeans", "KMedians", "quantiles"]

_FINEST = 2**16
"""Most steps in the widest column where no step is given."""

_UNLIKE = 10
"""How many times as wide as another a column may be without a warning."""


class KMeans(TransformerMixin, ClusterMixin, BaseEstimator):
    """Centers with a small sum of squared distances, released with differential privacy.

    Each row is one person. For people with several rows, run a job of `k_means` with `input.unit`.

    The promise is about the rows that reach `fit`. A step before it that learns from rows, such as a scaler
    in a pipeline of scikit-learn, voids it.

    Args:
        n_clusters: number of centers.
        epsilon: what each call of `fit` spends.
        delta: likewise; with 0 KMeans takes a method without it. KMedians needs one above 0.
        bounds: public lower and upper bound of all columns, a pair for each column, or a mapping from the
            name of each column to its pair. Values outside are moved to them. Choose them without looking at
            the data.
        step: distance of neighboring values that are told apart. By default it divides the bounds of every
            column where it can, and the widest column has at most 2^16 steps.
        neighbors: what is hidden: `add_or_remove_one` (the number of rows is private) or `replace_one`.
        ledger: a `shoal.Ledger`, or the path of one, that each fit is charged to.

    Attributes:
        cluster_centers_: released centers, shape (n_clusters, n_features).
        counts_: released numbers of rows nearest to each, shape (n_clusters,).
        release_: the whole release: what was spent, on which draws, and what is promised.
        n_features_in_: number of columns.

    There is no `labels_`: which center is nearest to a training row is not private. `predict` says it of rows
    that its caller has.
    """

    _task = "k_means"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        step: float | None = None,
        neighbors: str = "add_or_remove_one",
        ledger: Ledger | str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.step = step
        self.neighbors = neighbors
        self.ledger = ledger

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Release centers of the rows X, shape (n, d), whose dtypes are numbers. Each call spends the budget.

        Rows with a NaN, an infinity or a missing value are left out. The release does not say how many: that
        would take a part of epsilon (`input.checks` of a job).

        Columns have the names of a frame, or are called x0, x1 and so on. Where the bounds of one column are
        ten times as wide as those of another, a warning says that distances hardly see the narrow one.

        Raises:
            ShoalError: a parameter is wrong, or the ledger refuses the run.
        """
        _check_types(X)
        rows = self._cast(X, ensure_min_samples=0)
        names = _names(self, rows.shape[1])
        whole = isinstance(self.n_clusters, Integral) and not isinstance(self.n_clusters, bool)
        if not whole or not 1 <= self.n_clusters <= MAX_K:
            raise JobError(
                f"n_clusters is {quoted(self.n_clusters)}: give a whole number from 1 to {MAX_K:,}."
            )
        lower, upper = _bounds(self.bounds, names)
        _warn_of_widths(names, lower, upper)
        job = {
            "task": self._task,
            "input": {"columns": names, "checks": 0},
            "domain": {"lower": lower, "upper": upper, "step": _step(self.step, lower, upper)},
            "privacy": _privacy(self.epsilon, self.delta, self.neighbors, self.ledger),
            "params": {"k": int(self.n_clusters)},
        }
        table = pa.table({name: rows[:, axis] for axis, name in enumerate(names)})
        self.release_ = run(job, table)
        found = self.release_.result
        self.cluster_centers_: NDArray[np.float64] = np.array(found["centers"], dtype=np.float64)
        self.counts_: NDArray[np.int64] = np.array(found["counts"], dtype=np.int64)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the index of the released center that is nearest to each row, shape (n,). It spends nothing.

        Raises:
            ShoalError: a row has a NaN, an infinity or a missing value. `fit` leaves such rows out.
        """
        return np.asarray(pairwise_distances_argmin(self._whole(X), self.cluster_centers_), dtype=np.int64)

    def fit_predict(self, X: ArrayLike, y: object = None, **_: object) -> NDArray[np.int64]:
        """Fit, then say of the caller's own rows which center is nearest. The labels are not private."""
        return self.fit(X).predict(X)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the distance of each row to each released center, shape (n, n_clusters). It spends nothing.

        Raises:
            ShoalError: see `predict`.
        """
        return np.asarray(euclidean_distances(self._whole(X), self.cluster_centers_))

    def _whole(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return rows of the caller, each of whose values is a number.

        Raises:
            JobError: one is none.
        """
        check_is_fitted(self)
        rows = self._cast(X, reset=False)
        if not np.isfinite(rows).all():
            raise JobError(
                "X has a row with a NaN, an infinity or a missing value: leave such rows out, as fit does."
            )
        return rows

    def _cast(self, X: ArrayLike, **checks: Any) -> NDArray[np.float64]:
        """Return rows as float64 after checks of scikit-learn, and say nothing of what a value overflows."""
        if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
            X = np.ma.filled(X.astype(np.float64), np.nan)  # a masked value is a missing one
        with np.errstate(all="ignore"):
            return np.asarray(validate_data(self, X, dtype=np.float64, ensure_all_finite=False, **checks))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks: fits of the same rows differ, by their noise."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])


class KMedians(KMeans):
    """Centers with a small sum of distances; parameters and attributes are those of `KMeans`."""

    _task = "k_median"


def quantiles(
    data: Data,
    probabilities: Sequence[float],
    *,
    bounds: Mapping[str, tuple[float, float]],
    step: float,
    epsilon: float,
    delta: float = 0.0,
    neighbors: str = "add_or_remove_one",
    unit: str | None = None,
    ledger: Ledger | str | None = None,
) -> Release:
    """Release quantiles of columns. They share epsilon and delta equally.

    Args:
        data: see `shoal.run`.
        probabilities: a list of numbers, each above 0 and below 1.
        bounds: a mapping from the name of each column to its public lower and upper bound.
        step: distance of neighboring values that are told apart, in all columns.
        epsilon: what the call spends.
        delta: likewise.
        neighbors: `add_or_remove_one` or `replace_one`.
        unit: the column that says whose a row is, if a person has several rows; None where each row is a
            person.
        ledger: a `shoal.Ledger`, or the path of one, that the call is charged to.

    Returns:
        The release. `answers` has that of each column by its name, with `values`, `lows` and `highs` in its
        `result`. Where its name cannot be that of a question, such as `age (years)`, it is `1-age_years_`
        for the first column.

    Raises:
        ShoalError: a parameter is wrong, or the ledger refuses the run.
    """
    given: Any = probabilities  # a caller may give anything
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise JobError(f"probabilities is {quoted(given)}: give a list, such as [0.5].")
    wanted = list(given)
    asked: dict[str, Any] = {}
    for place, (column, (low, high)) in enumerate(_pairs(bounds), 1):
        asked[_question_name(place, column, asked)] = {
            "task": "quantiles",
            "columns": [column],
            "domain": {"lower": [low], "upper": [high], "step": step},
            "params": {"probabilities": wanted},
        }
    job = {
        "input": {} if unit is None else {"unit": unit},
        "privacy": _privacy(epsilon, delta, neighbors, ledger),
        QUESTIONS: asked,
    }
    return run(job, data)


def _question_name(place: int, column: Any, others: Container[str]) -> str:
    """Return the name of the question about a column: its own, where a question may have it.

    Raises:
        JobError: another column has what would be its name.
    """
    name = str(column)
    if not NAME.fullmatch(name) or name in others:
        name = f"{place}-{re.sub(r'[^A-Za-z0-9._-]+', '_', name)[:40]}"
    if name in others:
        raise JobError(f"bounds has {quoted(column)} and {name}: rename one of the columns.")
    return name


def _pairs(bounds: Any) -> list[tuple[str, tuple[Any, Any]]]:
    """Return the columns of quantiles with their bounds.

    Raises:
        JobError: there is no mapping from names to pairs, or an empty one.
    """
    if not isinstance(bounds, Mapping) or not bounds:
        raise JobError(
            f"bounds is {quoted(bounds)}: give a mapping from columns to pairs, such as {{'age': (0, 120)}}."
        )
    pairs = []
    for name, pair in bounds.items():
        if not isinstance(name, str):
            raise JobError(f"bounds has the key {quoted(name)}: give the name of a column, which is text.")
        try:
            low, high = list(() if isinstance(pair, str) else pair)
        except (TypeError, ValueError):
            raise JobError(f"bounds of {name} is {quoted(pair)}: give a pair, such as (0, 120).") from None
        pairs.append((name, (low, high)))
    return pairs


def _check_types(X: Any) -> None:
    """Check that X has columns of numbers.

    That follows from types alone. An error that depends on a value, or on the number of rows, would show it
    to whoever sees the error, and scikit-learn's errors quote some values.

    Raises:
        JobError: it does not have them.
    """
    if not (hasattr(X, "dtypes") or hasattr(X, "dtype")):
        raise JobError(f"X is a {type(X).__qualname__}: give an array, or a frame of pandas or polars.")
    if len(X.shape) != 2 or not X.shape[1]:
        raise JobError("X must have two dimensions, (rows, columns), and at least one column.")
    names = [str(name) for name in getattr(X, "columns", ())]
    if len(set(names)) < len(names):
        raise JobError("X has two columns of one name: give each its own.")
    kinds = set(map(_kind, X.dtypes if hasattr(X, "dtypes") else [X.dtype]))
    if "c" in kinds:
        raise JobError("Complex data not supported: give X columns of real numbers.")
    if not kinds <= set("biuf"):
        raise JobError("X has text, times or Python objects: give columns of a dtype of numbers.")


def _kind(dtype: Any) -> str:
    """Return the kind of a dtype as numpy names it; those of polars are numbers or not."""
    return str(dtype.kind) if hasattr(dtype, "kind") else "f" if dtype.is_numeric() else "O"


def _privacy(epsilon: float, delta: float, neighbors: str, ledger: Ledger | str | None) -> dict[str, Any]:
    place = ledger.path if isinstance(ledger, Ledger) else ledger
    charged = {} if place is None else {"ledger": place}
    return {"epsilon": epsilon, "delta": delta, "neighbors": neighbors, **charged}


def _bounds(bounds: Any, names: Sequence[str]) -> tuple[list[float], list[float]]:
    """Return lower and upper bounds of each column.

    Raises:
        JobError: they are missing, or do not fit the columns.
    """
    if bounds is None:
        raise JobError(
            "bounds is missing: give public bounds of the columns, such as (0, 1), or a pair for each column."
        )
    if isinstance(bounds, Mapping):
        if set(bounds) != set(names):
            raise JobError(
                f"bounds has the keys {quoted(list(bounds))}: give a pair for each column of X, which are "
                f"{quoted(list(names))}."
            )
        bounds = [bounds[name] for name in names]
    try:
        pairs = np.array(bounds, dtype=np.float64)
        low, high = (np.broadcast_to(side, len(names)) for side in (pairs if pairs.ndim == 1 else pairs.T))
    except (TypeError, ValueError):
        raise JobError(
            f"bounds does not fit {len(names)} columns: give a lower and an upper bound, or such a pair for "
            "each column."
        ) from None
    for name, least, most in zip(names, low.tolist(), high.tolist(), strict=True):
        if not least < most:
            raise JobError(
                f"bounds of {name} are {least} and {most}: the lower one must be the smaller one. Bounds are "
                "one pair, such as (0, 1), or such a pair for each column."
            )
    return low.tolist(), high.tolist()


def _names(model: KMeans, columns: int) -> list[str]:
    """Return the names of the columns of a frame, or x0, x1 and so on for an array."""
    given = [str(name) for name in getattr(model, "feature_names_in_", ())]
    return given if len(set(given)) == columns else [f"x{axis}" for axis in range(columns)]


def _warn_of_widths(names: Sequence[str], lower: Sequence[float], upper: Sequence[float]) -> None:
    """Warn of bounds, which are public, by which distances hardly see a column."""
    widths = {name: high - low for name, low, high in zip(names, lower, upper, strict=True)}
    wide, narrow = max(widths, key=lambda name: widths[name]), min(widths, key=lambda name: widths[name])
    if widths[wide] > _UNLIKE * widths[narrow] > 0:
        warnings.warn(
            f"The bounds of {wide} are {widths[wide] / widths[narrow]:.3g} times as wide as those of "
            f"{narrow}. Distances and noise are the same in all columns, so centers hardly depend on the "
            "narrow one: scale the columns to similar ranges first, by public numbers. A scaler that is "
            "fitted to the rows voids the promise.",
            UserWarning,
            stacklevel=3,
        )


def _step(step: float | None, lower: Sequence[float], upper: Sequence[float]) -> float:
    """Return the step that was given, or else one that divides the bounds of every column where it can."""
    if step is not None:
        return step
    widest = max(high - low for low, high in zip(lower, upper, strict=True))
    if not (widest > 0 and np.isfinite([*lower, *upper]).all()):
        return widest / _FINEST  # which the check of the job refuses, with the bounds
    widths = [Fraction(repr(high)) - Fraction(repr(low)) for low, high in zip(lower, upper, strict=True)]
    whole = math.lcm(*(width.denominator for width in widths))
    common = Fraction(math.gcd(*(int(width * whole) for width in widths)), whole)
    parts = int(common * _FINEST / max(widths))
    return float(common / parts) if parts else widest / _FINEST
