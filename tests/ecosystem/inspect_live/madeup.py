"""A provider of models that answer offline: `madeup/<name>`, right as often as SKILLS says.

`-M pause=0.1` makes them slow, `-M flaky=true` fail at every question once. With a tool at hand
they look the answer up, and hand in another one by chance, one time in ten.
"""

import random
import re
from typing import Any

import anyio
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi

from tests.ecosystem.inspect_runs import LETTERS, SKILLS, right
from tests.ecosystem.units import unit


@modelapi(name="madeup")
class Madeup(ModelAPI):  # type: ignore[misc]
    """One of them."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,  # noqa: ANN401 -- theirs
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self.pause = float(model_args.get("pause", 0))
        self.flaky = bool(model_args.get("flaky"))
        self.failed: set[str] = set()
        self.chance = random.Random(model_name)  # noqa: S311 -- the model's luck

    async def generate(
        self,
        input: list[Any],  # noqa: A002 -- theirs
        tools: Any = (),  # noqa: ANN401 -- theirs
        **_: object,
    ) -> ModelOutput:
        """An answer."""
        await anyio.sleep(self.pause)
        if tools:
            return self.act(input)
        (at,) = re.findall(r"Question (\d+)", input[-1].text)
        if self.flaky and at not in self.failed:
            self.failed.add(at)
            message = "the endpoint is down for a moment"
            raise RuntimeError(message)
        letter = right(int(at))
        if unit(self.model_name, at) >= SKILLS[self.model_name]:
            letter = LETTERS[(LETTERS.index(letter) + 1) % 4]
        told = ModelOutput.from_content(self.model_name, f"ANSWER: {letter}")
        told.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
        return told

    def act(self, said: list[Any]) -> ModelOutput:
        """The next step of an agent."""
        name, given = "look_up", dict[str, Any]()
        if said[-1].role == "tool":
            letter = said[-1].text if self.chance.random() < 0.9 else "none"
            name, given = "submit", {"answer": letter}
        else:
            (number,) = re.findall(r"Question (\d+)", said[-1].text)
            given = {"number": int(number)}
        step = ModelOutput.for_tool_call(self.model_name, name, given)
        step.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
        return step
