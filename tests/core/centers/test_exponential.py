"""The exponential function that is the same on every processor."""

import math

import numpy as np

from core.centers.exponential import falling


def test_it_is_the_exponential_function():
    x = np.concatenate([np.linspace(0, 64, 100_001), np.random.default_rng(0).random(100_000) * 1e-3])
    np.testing.assert_allclose(falling(x), np.exp(-x), rtol=1e-15)
    assert falling(np.array([[0.0, 1e300]])).tolist() == [[1.0, math.exp(-64)]]


def test_no_number_depends_on_others():
    x = np.random.default_rng(1).random(999) * 70
    alone = np.array([falling(x[i : i + 1])[0] for i in range(len(x))])
    assert (falling(x) == alone).all() and (
        falling(x.reshape(-1, 3, order="F")) == alone.reshape(-1, 3, order="F")
    ).all()


def test_a_few_values_to_the_bit():
    found = [number.hex() for number in falling(np.array([1 / 3, 1.0, 2.718281828, 33.3])).tolist()]
    assert found == EXPECTED


EXPECTED = ["0x1.6edd3122f2ea5p-1", "0x1.78b56362cef38p-2", "0x1.0e49788035395p-4", "0x1.f165bb9b59d94p-49"]
