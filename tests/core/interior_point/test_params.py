"""Bad parameters of interior_point are named."""

import pytest

from core.errors import InvalidValue
from core.interior_point.params import InteriorPoint


@pytest.mark.parametrize("values", [{"failure": 0.0}])
def test_bad_parameters_are_named(values):
    with pytest.raises(InvalidValue, match=f"^{next(iter(values))} is"):
        InteriorPoint(**values)
