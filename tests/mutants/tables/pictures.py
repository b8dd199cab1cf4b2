"""Wrong versions of the pictures of reports: what they show, and that they are the same again."""

from tests.mutants.mutant import Mutant, Selection

_DRAW = "pipelines/report/draw.py"
_PICTURE = "pipelines/answers/picture.py"
_DRAWN = Selection(("tests/pipelines/report/test_draw.py",), "fresh")
_SHOWN = Selection(("tests/pipelines/answers/test_pictures.py", "tests/pipelines/answers/test_maps.py"))

SHOWN = (
    Mutant(
        12,
        _DRAW,
        "identifiers in a picture depend on what was drawn before",
        '"{found[1]}clip-{mark}-{numbers.setdefault(found[2], len(numbers))}"',
        '"{found[1]}clip-{found[2]}"',
        _DRAWN,
    ),
    Mutant(
        12,
        _PICTURE,
        "an interval has half of its error",
        "max(least, value - error), max(least, value + error)",
        "max(least, value - error / 2), max(least, value + error / 2)",
        _SHOWN,
    ),
    Mutant(
        12,
        _PICTURE,
        "long names of groups are one",
        "return cut if len(set(cut)) == len(cut) else",
        "return cut if cut else",
        _SHOWN,
    ),
    Mutant(
        12,
        "pipelines/answers/quantiles.py",
        "the band of quantiles has one end twice",
        "np.array(lows, dtype=float), np.array(highs, dtype=float)",
        "np.array(lows, dtype=float), np.array(lows, dtype=float)",
        _SHOWN,
    ),
    Mutant(
        12,
        "pipelines/answers/maps.py",
        "latitude is to the right",
        "return point[self.across], point[1 - self.across]",
        "return point[0], point[1]",
        _SHOWN,
    ),
)
