"""What models are asked, and what the tests' endpoint answers, is as OpenAI's package has it."""

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter, with_config

from celeus.judges.endpoint import Endpoint, Prices
from celeus.judges.reading import read
from celeus.judges.rubrics import Rubric, read_rubric
from tests.judges.endpoints import KEY, endpoint, wrong

pytestmark = pytest.mark.ecosystem
RUBRIC = """
instructions = "An answer is correct if it is right."
template = "<question>$question</question><answer>$answer</answer>"
scale = {correct = 0, wrong = 1}
"""


@pytest.fixture
def rubric(tmp_path: Path) -> Rubric:
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC)
    return read_rubric(path)


def request_of(rubric: Rubric, at: Endpoint) -> dict[str, Any]:
    prompt = rubric.prompt({"question": "Q 3", "answer": "A"})
    return at.request(prompt, rubric.schema())


def test_a_request_is_one_of_the_package(rubric: Rubric) -> None:
    with endpoint() as at, Endpoint(at.url, KEY, "judge-1", Prices()) as ours:
        request = request_of(rubric, ours)
    strict = with_config(ConfigDict(extra="forbid"))(CompletionCreateParamsNonStreaming)
    taken = TypeAdapter(strict).validate_python(request)
    # Messages are looked at one by one, when they are asked for
    assert {**taken, "messages": [*taken["messages"]]} == request


async def asked(url: str, request: dict[str, Any]) -> ChatCompletion:
    """What the package reads of an endpoint."""
    async with openai.AsyncOpenAI(base_url=url, api_key=KEY) as client:
        answer: ChatCompletion = await client.chat.completions.create(**request)
        return answer


def test_the_package_reads_the_endpoint_as_we_do(rubric: Rubric) -> None:
    with endpoint() as at, Endpoint(at.url, KEY, "judge-1", Prices()) as ours:
        request = request_of(rubric, ours)
        theirs = asyncio.run(asked(at.url, request))
        choice = ours.choice(request)
    ChatCompletion.model_validate(theirs.model_dump(), strict=True)
    assert theirs.choices[0].model_dump(exclude_unset=True) == choice
    reading = read(theirs.choices[0].model_dump(), [*rubric.scale])
    assert reading == read(choice, [*rubric.scale])
    assert reading.soft(rubric.scale) == pytest.approx(wrong(3), abs=1e-9)
    assert theirs.usage is not None
    assert (theirs.usage.prompt_tokens, ours.spent.tokens_in) == (120, 120)
