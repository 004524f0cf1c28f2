"""Which draws a judge is handed: its own, free ones, the oldest again, new ones, and the cap."""

import heapq

import numpy as np
import pytest

from celeus.core.session.handout import Handout, OpenDraw, hand_out


def held(
    *by: str, round_: int = 1, left: float = 30.0, seen: bool = False, passed: bool = False
) -> OpenDraw:
    """An open draw, held by these."""
    return OpenDraw(round_, frozenset(by), left, seen=seen, passed=passed)


def test_own_draws_come_first_then_free_ones_then_new_ones() -> None:
    draws = [held(round_=2), held("ada", round_=3), held("bob", round_=5), held("ada", round_=9)]
    assert hand_out(draws, "ada", 2, judged=6, room=9) == Handout((3, 9), 0)
    assert hand_out(draws, "ada", 5, judged=6, room=9) == Handout((2, 3, 9), 2)
    assert hand_out(draws, "ada", 5, judged=6, room=1) == Handout((2, 3, 9), 1)
    assert hand_out(draws, "cleo", 1, judged=6, room=9) == Handout((2,), 0)


def test_a_count_of_nothing_is_what_is_held() -> None:
    draws = [held("bob"), held("ada", round_=2), held(round_=3), held("ada", round_=4)]
    assert hand_out(draws, "ada", 0, judged=99, room=9) == Handout((2, 4), 0)


def test_a_judge_has_what_it_held_last_and_nobody_holds_since() -> None:
    mine = OpenDraw(2, ended=("ada", "bob"))
    draws = [OpenDraw(1, ended=["bob"]), mine, OpenDraw(3, ["bob"], ended=["ada"])]
    assert hand_out(draws, "ada", 0, judged=0, room=9) == Handout((2,), 0)
    assert hand_out(draws, "ada", 1, judged=0, room=9) == Handout((2,), 0)
    assert hand_out(draws, "ada", 3, judged=0, room=9) == Handout((1, 2), 1)
    assert hand_out(draws, "cleo", 0, judged=0, room=9) == Handout((), 0)


@pytest.mark.parametrize(("leases", "least"), [(1, 8), (4, 8), (5, 10), (8, 16)])
def test_the_oldest_draw_goes_to_a_second_judge_where_enough_waits(leases: int, least: int) -> None:
    others = [held(f"judge-{at}", round_=200 + at) for at in range(1, leases)]
    draws = [held("slow", round_=3), *others]
    before = hand_out(draws, "ada", 1, judged=2 + least - 1, room=9)
    assert before == Handout((), 1)
    again = hand_out(draws, "ada", 1, judged=2 + least, room=9)
    assert again == Handout((3,), 0, again=3)
    assert hand_out(draws, "ada", 2, judged=2 + least, room=9) == Handout((3,), 1, again=3)


def test_only_the_oldest_goes_to_a_second_judge_and_to_no_third() -> None:
    draws = [held("slow", "bob"), held("other", round_=2)]
    assert hand_out(draws, "ada", 1, judged=20, room=9) == Handout((), 1)


def test_who_holds_the_oldest_is_handed_it_as_its_own() -> None:
    draws = [held("ada"), held("other", round_=2)]
    assert hand_out(draws, "ada", 1, judged=20, room=9) == Handout((1,), 0)
    assert hand_out(draws, "ada", 2, judged=20, room=9) == Handout((1,), 1)


def test_raters_that_the_plan_fixes_get_no_draw_of_another() -> None:
    assert hand_out([held("slow")], "ada", 1, judged=20, room=9, front_first=False).new == 1


@pytest.mark.parametrize(("leases", "cap"), [(1, 64), (8, 64), (9, 72), (16, 128)])
def test_nothing_is_drawn_while_too_much_waits(leases: int, cap: int) -> None:
    others = [held(f"judge-{at}", round_=900 + at) for at in range(2, leases)]
    front = held("slow", "second", left=3.5) if leases > 1 else held("slow", left=3.5)
    draws = [front, *others]
    drawn = hand_out(draws, "ada", 1, judged=cap - 1, room=9, front_first=False)
    assert drawn == Handout((), 1)
    waits = hand_out(draws, "ada", 1, judged=cap, room=9, front_first=False)
    assert waits == Handout((), 0, wait=3.5)


def test_who_waits_asks_again_after_five_seconds_at_most() -> None:
    draws = [held("slow", "second", left=25.0)]
    assert hand_out(draws, "ada", 3, judged=64, room=9) == Handout((), 0, wait=5.0)


def test_under_the_cap_one_still_gets_what_is_open() -> None:
    draws = [held("slow", "second"), held(round_=2), held("ada", round_=3)]
    assert hand_out(draws, "ada", 4, judged=80, room=9) == Handout((2, 3), 0)


def test_what_was_passed_on_comes_back_if_there_is_nothing_else() -> None:
    passed = OpenDraw(1, passed=True)
    assert hand_out([passed], "ada", 1, judged=0, room=1) == Handout((), 1)
    assert hand_out([passed], "ada", 1, judged=0, room=0) == Handout((1,), 0)
    assert hand_out([passed], "ada", 1, judged=64, room=1) == Handout((1,), 0)


def test_what_was_passed_on_to_a_holder_does_not_come_back_meanwhile() -> None:
    passed = held("bob", passed=True)
    assert hand_out([passed], "ada", 1, judged=20, room=50) == Handout((), 1)
    assert hand_out([passed], "ada", 1, judged=20, room=0) == Handout((), 0)
    assert hand_out([held("bob")], "ada", 1, judged=20, room=50) == Handout((1,), 0, again=1)


def test_a_large_batch_that_hangs_goes_again_after_the_first_of_another() -> None:
    draws = [held("hangs", round_=at) for at in range(1, 129)]
    assert hand_out(draws, "ada", 128, judged=63, room=200) == Handout((), 128)
    assert hand_out(draws, "ada", 128, judged=128, room=200) == Handout((1,), 127, again=1)
    assert hand_out(draws, "ada", 128, judged=256, room=200) == Handout((1,), 0, again=1)
    many = [held(f"judge-{at}", round_=at) for at in range(1, 41)]
    assert hand_out(many, "ada", 1, judged=79, room=200) == Handout((), 1)
    assert hand_out(many, "ada", 1, judged=80, room=200) == Handout((1,), 0, again=1)


@pytest.mark.parametrize(("judges", "size"), [(2, 32), (2, 128), (8, 32), (16, 4)])
def test_of_batches_few_are_judged_twice_and_nobody_waits(judges: int, size: int) -> None:
    """A batch takes half to one and a half times as long: others wait behind the front for it."""
    chance = np.random.default_rng(judges)
    holders: dict[int, set[int]] = {}
    judged: set[int] = set()
    batches: dict[int, tuple[int, ...]] = dict.fromkeys(range(judges), ())
    due = [(0.0, judge) for judge in range(judges)]
    labels = drawn = waited = 0
    for _ in range(60 * judges):
        now, judge = heapq.heappop(due)
        heapq.heappush(due, (now + chance.uniform(0.5, 1.5), judge))
        labels += len(batches[judge])
        judged.update(batches[judge])
        holders = {one: by for one, by in holders.items() if one not in judged}
        draws = [OpenDraw(one, frozenset(holders[one])) for one in sorted(holders)]
        handout = hand_out(draws, judge, size, judged=len(judged), room=size)
        new = tuple(range(drawn + 1, drawn + handout.new + 1))
        drawn += handout.new
        batches[judge] = handout.rounds + new
        waited += not batches[judge]
        for one in batches[judge]:
            holders.setdefault(one, set()).add(judge)
    assert labels <= 1.01 * len(judged)
    assert not waited


def test_a_share_bounds_what_the_asker_has_not_seen() -> None:
    draws = [held("slow"), held(round_=2), held(round_=3, seen=True)]
    expected = [
        Handout((3,), 0),
        Handout((2, 3), 0),
        Handout((1, 2, 3), 0, again=1),
        Handout((1, 2, 3), 1, again=1),
    ]
    for unseen, handout in enumerate(expected):
        assert hand_out(draws, "ada", 9, judged=20, room=9, unseen=unseen) == handout
    window = [held("ada in another window", seen=True)]
    assert hand_out(window, "ada", 1, judged=20, room=9, unseen=1) == Handout((), 1)


def labels_until(
    folded: int, judges: int, call: float, slow: dict[int, float], dead: tuple[float, int] | None
) -> tuple[int, int]:
    """Labels given, and draws, until so many rounds are folded: judges in their own time.

    ``slow`` are the seconds of some calls by round; ``dead`` says when how many judges die.
    """
    holders: dict[int, set[int]] = {}
    judged: set[int] = set()
    drawn = labels = 0
    now, due = 0.0, [(0.0, judge, 0) for judge in range(judges)]
    while True:
        now, judge, round_ = heapq.heappop(due)
        if round_:
            labels += 1
            judged.add(round_)
            holders.pop(round_, None)
        front = min(holders, default=drawn + 1)
        if front > folded:
            return labels, drawn
        if dead is not None and now >= dead[0] and judge < dead[1]:
            continue
        draws = [OpenDraw(one, frozenset(holders[one])) for one in sorted(holders)]
        handout = hand_out(draws, judge, 1, judged=len(judged), room=1)
        if handout.new:
            drawn += 1
            mine = drawn
        elif handout.rounds:
            mine = handout.rounds[0]
        else:
            heapq.heappush(due, (now + call, judge, 0))
            continue
        first = mine not in holders
        holders.setdefault(mine, set()).add(judge)
        took = slow.get(mine, call) if first else call
        if dead is None or judge >= dead[1] or now + took < dead[0]:
            heapq.heappush(due, (now + took, judge, mine))


def test_one_slow_call_costs_one_label() -> None:
    """METHOD: one call of 20 s beside 3 judges whose calls take 20 ms."""
    undisturbed, _ = labels_until(280, 3, 0.02, {}, None)
    labels, drawn = labels_until(280, 3, 0.02, {100: 20.0}, None)
    assert labels <= undisturbed + 1
    assert drawn <= 280 + 16


def test_judges_that_die_cost_no_label() -> None:
    """METHOD: 4 of 8 judges die after 2 s, and their leases do not end."""
    undisturbed, _ = labels_until(244, 8, 0.11, {}, None)
    labels, drawn = labels_until(244, 8, 0.11, {}, (2.0, 4))
    assert labels <= undisturbed + 4
    assert drawn <= 244 + 16
