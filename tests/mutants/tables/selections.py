"""Which tests a mutant is given to: each selection is generic over the tasks that it names."""

from tests.mutants.mutant import Selection

_PLANS = "tests/pipelines/test_every_plan.py"


def charged(tasks: str, only: str = "") -> Selection:
    """Nothing is drawn that is not charged, and nothing with less noise."""
    return Selection((_PLANS,), _and("as_charged or charges_for", only), tasks)


def nothing_but_noise(tasks: str, only: str = "") -> Selection:
    """What a round releases follows from what its draws answered."""
    return Selection((_PLANS,), _and("nothing_but_noise", only), tasks)


def spent(tasks: str, only: str = "") -> Selection:
    """What a draw really spends between neighbors is charged."""
    return Selection(("tests/pipelines/test_every_sensitivity.py",), only, tasks)


def smooth(tasks: str, only: str = "") -> Selection:
    """The smooth bound that noise is drawn with is smooth, and no less than the change."""
    return Selection(("tests/pipelines/test_every_smooth_bound.py",), only, tasks)


def sampled(tasks: str, only: str = "") -> Selection:
    """Samples are of the charged rate, independent, and secret."""
    return Selection(("tests/pipelines/test_every_sample.py",), only, tasks)


def ordered(tasks: str, only: str = "") -> Selection:
    """The order of arrival changes nothing."""
    return Selection(("tests/pipelines/test_every_order.py",), only, tasks)


ACCOUNTANTS = Selection(
    ("tests/core/test_accountants.py", "tests/core/test_budget.py", "tests/core/test_privacy_filter.py")
)
"""Accountants against exact losses."""

FULLEST = Selection(("tests/core/one_cluster/practical/test_ball_cover.py",), "full")
"""Largest counts of balls against those of counting every ball."""

BOXES = Selection(("tests/core/one_cluster/practical/test_boxes.py",))
"""Boxes: their keys, counts and borders."""

TILES = Selection(("tests/core/one_cluster/practical/test_tiles.py",))
"""Counts of balls tile by tile against those of all cells at once."""

CROWDED = Selection(
    (
        "tests/core/one_cluster/practical/test_both_at_once.py",
        "tests/core/one_cluster/practical/test_ball_cover.py",
    ),
    "two_passes or crowd or charged_for",
)
"""Level and ball from one pass against those of two passes, and crowded balls against counting every ball."""

WORST_DATA = Selection(("tests/core/one_cluster/practical/test_guarantee.py",), "worst_data or floor")
"""The floor of the choice of a region: its scores, and whether some region exceeds it on the worst data."""

FAR_RECORDS = Selection(("tests/core/centers/test_coreset.py",), "hidden or few_far")
"""Records that noise hides stand for little, and those far from all others are near a center."""

FIND_BACK = Selection(
    ("tests/core/centers/test_coreset.py",), "radius_grows or noise_alone or without_a_cell or off_the_axes"
)
"""Centers that start far from their records find back to them, and noise alone does not move them."""

BORDER = Selection(("tests/core/one_cluster/practical/test_wide_domains.py",), "border")
"""Records at the border of balls, where floats of squared distances are not exact."""

SAMPLED_EXACTLY = Selection(("tests/core/test_discrete_noise.py", "tests/core/test_secure_noise.py"))
"""Every word fed to the samplers, and draws, against exact probabilities."""

SPLITS = Selection(("tests/core/mechanisms/test_splits.py",), "likely_as_charged")
"""Exact probabilities of every outcome, because probing one outcome does not show what splits spend."""

LEDGER = Selection(("tests/pipelines/ledger/test_ledger.py",), "fit or twice or retry or charged_once")
"""What a ledger admits, refuses and charges."""


def _and(one: str, other: str) -> str:
    return f"({one}) and ({other})" if other else one


def needed(tasks: str, only: str = "") -> Selection:
    """Some neighbors lose what a draw is charged, so that it has no more noise than it needs."""
    return Selection(("tests/pipelines/test_every_charge.py",), only, tasks)
