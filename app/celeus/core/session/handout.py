"""The draws a judge is handed: one rule for services and for sessions in one's own process.

Rounds are folded in the order of their draws: a draw whose judge has died or hangs holds up all
that is judged behind it. A judge who asks for draws is handed, until it holds as many as it wants:

1. the draws it holds, the oldest first, and those whose leases have ended that it held last: a
   program goes on where it was after it, or the service, was away;
2. others' draws whose leases have ended, the oldest first;
3. *front first*: the oldest open draw once more, with the probability it was drawn with, where
   enough judged rounds wait behind it, it has one holder, and that is somebody else;
4. new draws, unless so many judged rounds wait that the oldest draw has to be answered first
   (the *cap*);
5. if that is nothing at all, draws that it passed on to others and nobody holds.

Nothing is drawn in step 3, and the first answer counts: docs/evidence/method.md#20-raters says why
it is left out where the plan fixes who judges an item.
"""

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from celeus.stalls import is_stalled

MOST_HOLDERS = 2
"""Judges that may hold one draw at a time."""
LEAST_CAP, CAP_A_LEASE = 64, 8
"""Judged rounds that wait before nothing new is drawn: at least, and per lease that counts."""
MOST_LEASES = 32
"""Leases that count of judges who hold several draws; but every judge counts as one. Who judges in
batches answers many at once, and the others' batches wait behind it though nothing is wrong. If a
larger batch is taken for stalled, that costs one label in so many."""
SLOW_TIMES = 5
"""Multiple of the median time to judge after which a draw held by a person counts as stalled."""
LONGEST_WAIT = 5.0
"""Seconds until a judge asks again who waits for the oldest draw."""


class OpenDraw(NamedTuple):
    """A draw that nobody has judged yet.

    ``holders`` are those whose leases run, the last of them for ``left`` more seconds, which counts
    of the oldest draw alone; ``ended`` those whose leases have ended and who did not pass it on.
    ``seen``: the asker was handed it before, by another name. ``passed``: the asker left it to
    others a while ago.
    """

    round: int
    holders: Collection[Hashable] = ()
    left: float = math.inf
    ended: Collection[Hashable] = ()
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
    """Return what ``asker`` is handed, who wants to hold ``count`` draws; with 0 all it has.

    ``draws`` are all open ones in order of their rounds, ``judged`` the rounds that are judged, and
    ``room`` the new draws that may be made. At most ``unseen`` draws are ones that the asker has
    not seen; None sets no limit.
    """
    held = [draw for draw in draws if asker in (draw.holders or draw.ended)]
    if not count:
        return Handout(tuple(draw.round for draw in held), 0)
    held_rounds = {draw.round for draw in held}
    free = [
        draw for draw in draws if not (draw.holders or draw.passed or draw.round in held_rounds)
    ]
    left = count if unseen is None else unseen
    handed: list[OpenDraw] = []
    for draw in held + free:
        if len(handed) < count and (draw.seen or left > 0):
            left -= not draw.seen
            handed.append(draw)
    again, capped = None, False
    if draws:
        front, holders = draws[0], [holder for draw in draws for holder in draw.holders]
        leases = max(len(set(holders)), min(len(holders), MOST_LEASES))
        behind = judged - (front.round - 1)
        capped = behind >= max(LEAST_CAP, CAP_A_LEASE * leases)
        stalled = front_first and is_stalled(behind, leases)
        once = 0 < len(front.holders) < MOST_HOLDERS and asker not in front.holders
        known = front.seen or front.passed
        if stalled and once and not known and left > 0 and len(handed) < count:
            left -= 1
            handed.append(front)
            again = front.round
    new = 0 if capped else max(0, min(count - len(handed), left, room))
    if not handed and not new:
        handed = [draw for draw in draws if draw.passed and not draw.holders][:count]
    wait = None
    if capped and not handed:
        wait = min(LONGEST_WAIT, draws[0].left)
    return Handout(tuple(sorted(draw.round for draw in handed)), new, again, wait)
