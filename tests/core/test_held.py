"""What the private stage of a plan holds, from what its rounds say."""

from types import SimpleNamespace

from core.held import AT_WORK, Held, held_by


def test_rounds_hold_what_the_largest_of_them_holds_and_every_kind_that_grows() -> None:
    small = SimpleNamespace(most_counts=5, growing="a row each")
    dense = SimpleNamespace(most_counts=7, dense=True, growing="a group each")
    checked = SimpleNamespace(round_=SimpleNamespace(most_counts=90, growing="a row each"))
    held = held_by([small, dense, checked, SimpleNamespace(most_counts=None)])
    assert held == Held(90, True, ("a row each", "a group each"))
    assert held.bytes == 90 * AT_WORK
    assert held_by([small]) == Held(5, False, ("a row each",))
    assert held_by([]) == Held(0, False, ())
