"""Parameters of quantiles, medians and extremes."""

import math

import pytest

from core.errors import InvalidValue
from core.quantiles.params import Median, Minimum, Quantiles
from core.quantiles.task import MEDIAN
from tests.core.quantiles.values import PURE, RELATIONS, SMALL


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"probabilities": ()}, r"probabilities has 0 values"),
        ({"probabilities": (0.5, 1.0)}, r"probabilities has 1\.0"),
        ({"probabilities": (0.0,)}, r"probabilities has 0\.0"),
        ({"probabilities": (0.5, 0.5)}, r"probabilities is \[0\.5, 0\.5\]"),
        ({"probabilities": (math.nan,)}, r"probabilities has nan"),
        ({"probabilities": (0.5,), "failure": 1.0}, r"failure is 1\.0"),
    ],
)
def test_bad_parameters_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        Quantiles(**values)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Median(quantile=1.5), "quantile"),
        (lambda: Median(failure=0.0), "failure"),
        (lambda: Median(noise="gauss"), "noise"),
        (lambda: Minimum(scale_share=1.0), "scale_share"),
        (
            lambda: MEDIAN.plan(
                SMALL, Median(method="smooth", noise="laplace"), PURE, RELATIONS[0], bytes(16)
            ),
            "noise",
        ),
    ],
)
def test_bad_parameters_of_one_value_are_named(make, field):
    with pytest.raises(InvalidValue, match=f"^{field} "):
        make()
