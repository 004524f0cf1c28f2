"""A queue in this process with somebody at it, who judges whatever lies there."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from celeus.bridges.loop import Verdict
from celeus.bridges.questions import Judgement, Task
from celeus.bridges.tool import ToolUnavailable

Judge = Callable[[Task], Judgement | None]


class PowerCut(BaseException):
    """The bridge ends here, and nothing of it runs on."""


@dataclass
class Desk:
    """Keeps what is put; before each look its judge says something of a few.

    ``cuts``: after how many calls the power is cut, in the order of their coming; the call is done
    then, and nobody is told. ``begun`` are marks that somebody works on.
    """

    judge: Judge
    pace: int = 3
    name: str = "the desk"
    cuts: list[int] = field(default_factory=list)
    away: int = 0
    begun: set[str] = field(default_factory=set)
    tasks: dict[str, Task] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    put_of: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    calls: int = 0

    def put(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            assert task.mark not in self.tasks, "put twice"
            self.tasks[task.mark] = task
            self.put_of.append(task.id)
        self._called()

    def done(self) -> Mapping[str, Verdict | None]:
        open_ = [mark for mark in self.tasks if mark not in self.verdicts]
        # Not in the order of the draws
        for mark in open_[: self.pace][::-1]:
            if mark not in self.begun and (judgement := self.judge(self.tasks[mark])):
                self.verdicts[mark] = Verdict(judgement, "ann")
        there = {mark: self.verdicts.get(mark) for mark in self.tasks}
        self._called()
        return there

    def take_back(self, marks: Collection[str]) -> None:
        for mark in marks:
            if mark not in self.begun and mark not in self.verdicts:
                del self.tasks[mark]
                self.taken.append(mark)
        self._called()

    def said(self, id_: str) -> tuple[str, Verdict]:
        """What was said of an item, and by which mark it is known."""
        (mark,) = (mark for mark, task in self.tasks.items() if task.id == id_)
        return mark, self.verdicts[mark]

    def _called(self) -> None:
        self.calls += 1
        if self.away:
            self.away -= 1
            raise ToolUnavailable("the desk is away")
        if self.cuts and self.calls >= self.cuts[0]:
            self.calls = 0
            self.cuts.pop(0)
            raise PowerCut
