"""The task that the tests drive: 400 questions with four choices."""

from inspect_ai import Task, task
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

from tests.ecosystem.inspect_runs import questions


@task  # type: ignore[untyped-decorator]
def exam(samples: int = 400) -> Task:
    """The questions."""
    return Task(dataset=questions(samples), solver=multiple_choice(), scorer=choice())
