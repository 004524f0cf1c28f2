"""The options of `lm_eval run` that a session's run takes, as they are typed."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from celeus.errors import InvalidValue
from celeus.harnesses.lm_eval_documents import Machine, Settings


@dataclass(frozen=True, slots=True)
class HarnessOptions:
    """The tasks and the model, the machine they run on, and the folder of their files."""

    settings: Settings
    machine: Machine
    output_path: Path

    @property
    def task_names(self) -> str:
        """The tasks, with commas between."""
        return ", ".join(self.settings.tasks)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise InvalidValue(f"of lm-eval's own options: {message}", field="lm-eval")


def read_options(arguments: Sequence[str]) -> HarnessOptions:
    """Return the harness's options of a command; refuses others, and values that are none."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--model_args", default="")
    parser.add_argument("--output_path", type=Path, default=Path("results"))
    for name in ("--num_fewshot", "--limit", "--max_batch_size"):
        parser.add_argument(name, type=_whole)
    for name in ("--apply_chat_template", "--confirm_run_unsafe_code"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--fewshot_as_multiturn", action="store_true", default=None)
    unshown = "--no_fewshot_as_multiturn"
    parser.add_argument(unshown, dest="fewshot_as_multiturn", action="store_false", default=None)
    more = ("--system_instruction", "--gen_kwargs", "--include_path", "--batch_size", "--device")
    for name in more:
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    settings = Settings(
        tuple(name.strip() for name in given.tasks.split(",") if name.strip()),
        given.model,
        given.model_args,
        given.num_fewshot,
        given.limit,
        given.apply_chat_template,
        given.fewshot_as_multiturn,
        given.system_instruction,
        given.gen_kwargs,
        given.include_path,
        given.confirm_run_unsafe_code,
    )
    machine = Machine(given.batch_size, given.max_batch_size, given.device)
    return HarnessOptions(settings, machine, given.output_path)


def _whole(text: str) -> int:
    """Return a number of examples, documents or requests; none of them is negative."""
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number
