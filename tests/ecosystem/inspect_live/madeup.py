"""A provider of models that answer offline: `madeup/<name>`, right as often as SKILLS says.

`-M pause=0.1` makes them slow, `-M flaky=true` fail at every question once.
"""

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

    async def generate(
        self,
        input: list[Any],  # noqa: A002 -- theirs
        **_: object,
    ) -> ModelOutput:
        """An answer."""
        await anyio.sleep(self.pause)
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
