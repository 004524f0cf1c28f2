"""Which draws a judge is handed: the one rule for services and for sessions in one's own process.

Rounds are folded in the order of their draws: a draw whose judge has died or hangs holds up all
that is judged behind it. A judge who asks for draws is handed, until it holds as many as it wants:

1. the draws it holds, the oldest first: a program that was started again goes on where it was;
2. draws whose leases have ended, the oldest first;
3. *front first*: the oldest open draw once more, with the probability it was drawn with, where
   enough judged rounds wait behind it, it has one holder, and that is somebody else;
4. new draws, unless so many judged rounds wait that the oldest draw has to be answered first
   (the *cap*);
5. if that is nothing at all, draws that it passed on to others.

Nothing is drawn in step 3, and the first answer counts: docs/evidence/method.md#20-raters says why
it is left out where the plan fixes who judges an item.
"""

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_HOLDERS = 2
"""Judges that may hold one draw at a time."""
LEAST_BEHIND, BEHIND_A_LEASE = 8, 2
"""Judged rounds that wait before the oldest draw is handed out again: at least, and per lease."""
LEAST_CAP, CAP_A_LEASE = 64, 8
"""Judged rounds that wait before nothing new is drawn: at least, and per lease."""
SLOW_TIMES = 5
"""Multiple of the median time to judge after which a draw held by a person counts as stalled."""
LONGEST_WAIT = 5.0
"""Seconds until a judge asks again who waits for the oldest draw."""


class OpenDraw(NamedTuple):
    """A draw that nobody has judged yet.

    ``holders`` are those whose leases run, the last of them for ``left`` more seconds, which counts
    of the oldest draw alone. ``seen``: the asker was handed it before, by another name. ``passed``:
    nobody holds it, and the asker left it to others a while ago.
    """

    round: int
    holders: Collection[Hashable] = ()
    left: float = math.inf
    seen: bool = False
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Handout:
    """The open rounds to hand to a judge, in order, and how many new draws to make.

    ``again`` is the round among them that somebody else holds as well. ``wait`` are the seconds
    until it is worth asking again, where the judge gets nothing because of the cap.
    """

    rounds: tuple[int, ...]
    new: int
    again: int | None = None
    wait: float | None = None


def is_capped(behind: int, leases: int) -> bool:
    """Whether nothing new is drawn, with so many judged rounds behind the oldest open draw."""
    return behind >= max(LEAST_CAP, CAP_A_LEASE * leases)


def hand_out(  # noqa: PLR0913 -- all that the rule depends on, each by its name
    draws: Sequence[OpenDraw],
    asker: Hashable,
    count: int,
    *,
    judged: int,
    room: int,
    unseen: int | None = None,
    front_first: bool = True,
) -> Handout:
    """Return what ``asker`` is handed, who wants to hold ``count`` draws; with 0 all that it holds.

    ``draws`` are all open ones in order of their rounds, ``judged`` the rounds that are judged, and
    ``room`` the new draws that may be made. At most ``unseen`` draws are ones that the asker has
    not seen; None sets no limit.
    """
    held = [draw for draw in draws if asker in draw.holders]
    if not count:
        return Handout(tuple(draw.round for draw in held), 0)
    free = [draw for draw in draws if not (draw.holders or draw.passed)]
    left = count if unseen is None else unseen
    handed: list[OpenDraw] = []
    for draw in held + free:
        if len(handed) < count and (draw.seen or left > 0):
            left -= not draw.seen
            handed.append(draw)
    again, capped = None, False
    if draws:
        front, leases = draws[0], sum(len(draw.holders) for draw in draws)
        behind = judged - (front.round - 1)
        capped = is_capped(behind, leases)
        stalled = front_first and behind >= max(LEAST_BEHIND, BEHIND_A_LEASE * leases)
        once = 0 < len(front.holders) < MOST_HOLDERS and asker not in front.holders
        if stalled and once and not front.seen and left > 0 and len(handed) < count:
            left -= 1
            handed.append(front)
            again = front.round
    new = 0 if capped else max(0, min(count - len(handed), left, room))
    if not handed and not new:
        handed = [draw for draw in draws if draw.passed][:count]
    wait = None
    if capped and not handed:
        wait = min(LONGEST_WAIT, draws[0].left)
    return Handout(tuple(sorted(draw.round for draw in handed)), new, again, wait)
