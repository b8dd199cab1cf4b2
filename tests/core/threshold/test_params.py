"""Bad parameters of threshold are named."""

import pytest

from core.errors import InvalidValue
from core.threshold.params import Threshold


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": 0.0}, r"^alpha is 0\.0: it must be at least 1e-05"),
        ({"alpha": 9e-6}, r"^alpha is 9e-06"),
        ({"alpha": 1.0}, r"^alpha is 1\.0: .* below 1\."),
        ({"failure": 1.5}, r"^failure is 1\.5"),
    ],
)
def test_bad_parameters_are_named(values, message):
    with pytest.raises(InvalidValue, match=message):
        Threshold(**values)
