"""A model for lm-eval that needs no network: what it answers depends on what it is asked."""

import random
import re
import time
from pathlib import Path

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from tests.ecosystem.units import unit

KIND = "hashlm"


@register_model(KIND)
class HashLM(LM):  # type: ignore[misc]  # it ships no types
    """Knows the answer to a share of sums, its ``skill``.

    With ``whole`` it depends on the whole prompt, examples included, whether it knows a sum.
    ``slow`` is how many seconds a request takes it; what it is asked is added to the file ``log``.
    With ``chance`` it draws anew whether it knows a sum, from the numbers that its ``seed`` gives.
    """

    made = 0
    """How often one was constructed."""

    def __init__(  # noqa: PLR0913 -- what `--model_args` may say
        self,
        name: str = "a",
        skill: float = 0.7,
        *,
        whole: bool = False,
        slow: float = 0.0,
        log: str = "",
        chance: bool = False,
        seed: int = 1234,
        **more: object,
    ) -> None:
        super().__init__()
        del more
        self.name, self.skill, self.whole = name, float(skill), whole
        self.slow, self.log = slow, log
        # As lm-eval's endpoints keep what they send with every request
        self._seed: int | None = seed
        self.chance = random.Random(seed) if chance else None  # noqa: S311 -- the model's luck
        HashLM.made += 1

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """The right choice is the likeliest one where the sum is known."""
        told = []
        for request in requests:
            context, choice = request.args
            one, other = _sum(context)
            known = self._drawn(context, one, other) < self.skill
            likelihood = -1.0 - 3.0 * unit(self.name, "choice", one, other, choice)
            if choice.strip() == str(one + other):
                likelihood = -0.2 if known else -5.0
            told.append((likelihood, False))
        return told

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Marked with #### for the most part, and sometimes wrong."""
        told = []
        for request in requests:
            one, other = _sum(request.args[0])
            drawn = self._drawn(request.args[0], one, other)
            if drawn < self.skill * 0.8:
                told.append(f"#### {one + other}")
            else:
                told.append(f"it is {one + other}" if drawn < self.skill else f"#### {one - other}")
        return told

    def _drawn(self, context: str, one: int, other: int) -> float:
        """What decides whether it knows a sum."""
        time.sleep(self.slow)
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{one}+{other}\n")
        if self.chance is not None:
            return self.chance.random()
        return unit(self.name, one, other, *([context] if self.whole else []))

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Of no task here."""
        raise NotImplementedError(requests)


def _sum(context: str) -> tuple[int, int]:
    """The last sum that is asked for."""
    one, other = re.findall(r"(\d+)\+(\d+)\?", context)[-1]
    return int(one), int(other)
