"""Which tests a mutant is given to: each selection is generic over the tasks that it names."""

from tests.mutants.mutant import Tests

_PLANS = "tests/pipelines/test_every_plan.py"


def charged(tasks: str, only: str = "") -> Tests:
    """Nothing is drawn that is not charged, and nothing with less noise."""
    return Tests((_PLANS,), _and("as_charged or charges_for", only), tasks)


def nothing_but_noise(tasks: str, only: str = "") -> Tests:
    """What a round releases follows from what its draws answered."""
    return Tests((_PLANS,), _and("nothing_but_noise", only), tasks)


def _and(one: str, other: str) -> str:
    return f"({one}) and ({other})" if other else one
