"""The task of an agent: it looks a letter up with a tool, and hands it in."""

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.tool import Tool, tool

from tests.ecosystem.inspect_runs import questions


@tool  # type: ignore[untyped-decorator]
def look_up() -> Tool:
    """A tool that has every letter."""

    async def execute(number: int) -> str:
        """Look the letter of a question up.

        Args:
            number: The number of the question.

        """
        return str(questions(number + 1)[number].target)

    return execute


@task  # type: ignore[untyped-decorator]
def errand(samples: int = 12) -> Task:
    """The questions, without choices."""
    asked = [Sample(id=it.id, input=it.input, target=it.target) for it in questions(samples)]
    return Task(dataset=asked, solver=react(tools=[look_up()]), scorer=match())
