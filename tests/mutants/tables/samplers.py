"""Wrong versions of the samplers of noise."""

from tests.mutants.mutant import Mutant
from tests.mutants.tables.selections import SAMPLED_EXACTLY

_DISCRETE = "core/discrete_noise.py"
_SECURE = "core/secure_noise.py"

_WRONG = (
    (_DISCRETE, "Laplace noise has half its scale", "Rational(bottom, top)", "Rational(2 * bottom, top)"),
    (
        _DISCRETE,
        "Gaussian noise has its scale over the square root of 2",
        "Rational(bottom**2, 2 * top**2)",
        "Rational(bottom**2, top**2)",
    ),
    (_DISCRETE, "zero is counted twice", "kept = ~negative | (steps > 0) | (lows > 0)", "kept = steps >= 0"),
    (_DISCRETE, "small noise is never negative", "signed=not self.low_bits", "signed=False"),
    (_DISCRETE, "small noise is 0 twice as often", "weights[(place + 1) // 2]", "weights[place // 2]"),
    (
        _DISCRETE,
        "negative steps are one too far",
        "places + 1, -places)",
        "places + 1, -places - 2)",
    ),
    (
        _DISCRETE,
        "a signed step that the first bits do not decide is its place in their order",
        "steps[open_] = self._steps(places)",
        "steps[open_] = places",
    ),
    (
        _DISCRETE,
        "a step is the first one possible by the first bits",
        "return np.where(within > 0, _OPEN, self._steps(np.cumsum(within)))",
        "return self._steps(np.cumsum(within) - within)",
    ),
    (
        _DISCRETE,
        "a step is decided by 47 bits, which cuts the tail",
        "places[number] = self._decided(int(drawn[number]), random)",
        "pass",
    ),
    (
        _DISCRETE,
        "the ratio of neighboring weights of a Gaussian stays the same",
        "if self.power == 1 else exp_bounds(self.rate.times(2), bits)",
        "if self.power else exp_bounds(self.rate.times(2), bits)",
    ),
    (
        _DISCRETE,
        "every proposal is kept",
        "kept[place] &= self._keeps(*proposal, int(coins[place]), random)",
        "pass",
    ),
    (
        _DISCRETE,
        "what is surely kept is bounded by the smallest x of a step",
        "(j + 1) ** self.power - j**self.power for j",
        "j**self.power - max(0, j - 1) ** self.power for j",
    ),
    (
        _DISCRETE,
        "proposals that the first bits do not decide are dropped",
        "if drawn << _GUARD >= most:",
        "if drawn << _GUARD >= 0:",
    ),
    (
        _DISCRETE,
        "bits that do not decide are followed by zeros",
        "int(random(_MORE_BITS, 1)[0]), bits + _MORE_BITS\n            for",
        "0, bits + _MORE_BITS\n            for",
    ),
    (
        _DISCRETE,
        "low bits are even",
        "random(self.low_bits, count).astype(np.int64), random",
        "random(self.low_bits, count).astype(np.int64) & ~1, random",
    ),
    (
        _SECURE,
        "the highest random bit is always 0",
        "words.dtype.type(8 * size - bits)",
        "words.dtype.type(8 * size - bits + 1)",
    ),
    (
        _SECURE,
        "all values get the same noise",
        "draw_noise(values.size, scale, power, random_bits).reshape(values.shape)",
        "draw_noise(1, scale, power, random_bits)",
    ),
)

SAMPLERS = tuple(Mutant(12, file, wrong, old, new, SAMPLED_EXACTLY) for file, wrong, old, new in _WRONG)
