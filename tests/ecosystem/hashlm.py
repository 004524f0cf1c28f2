"""A model for lm-eval that needs no network: what it answers depends on the sum it is asked."""

import re

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from tests.ecosystem.units import unit

KIND = "hashlm"


@register_model(KIND)
class HashLM(LM):  # type: ignore[misc]  # it ships no types
    """Knows the answer to a share of sums, its ``skill``."""

    def __init__(
        self, name: str = "a", skill: float = 0.7, batch_size: int = 1, **more: object
    ) -> None:
        super().__init__()
        del batch_size, more
        self.name, self.skill = name, float(skill)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """The right choice is the likeliest one where the sum is known."""
        told = []
        for request in requests:
            context, choice = request.args
            one, other = _sum(context)
            known = unit(self.name, one, other) < self.skill
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
            drawn = unit(self.name, one, other)
            if drawn < self.skill * 0.8:
                told.append(f"#### {one + other}")
            else:
                told.append(f"it is {one + other}" if drawn < self.skill else f"#### {one - other}")
        return told

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Of no task here."""
        raise NotImplementedError(requests)


def _sum(context: str) -> tuple[int, int]:
    """The last sum that is asked for."""
    one, other = re.findall(r"(\d+)\+(\d+)\?", context)[-1]
    return int(one), int(other)
