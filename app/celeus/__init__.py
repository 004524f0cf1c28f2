"""Celeus: certifies evaluation scores by intervals that hold at every moment."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celeus.client.asynchronous import AsyncClient as AsyncClient
    from celeus.client.asynchronous import AsyncSession as AsyncSession
    from celeus.client.blocking import Client as Client
    from celeus.client.blocking import Session as Session
    from celeus.client.label_loop import JudgeResult as JudgeResult
    from celeus.client.label_loop import Turn as Turn
    from celeus.client.refusals import Problem as Problem
    from celeus.client.refusals import Unreachable as Unreachable
    from celeus.client.results import Pool as Pool
    from celeus.client.results import Status as Status
    from celeus.errors import NeedsAnswer as NeedsAnswer
    from celeus.errors import Refusal as Refusal
    from celeus.runs.certify import best as best
    from celeus.runs.certify import certify as certify
    from celeus.runs.certify import compare as compare
    from celeus.runs.certify import judge_check as judge_check
    from celeus.runs.items import read_items as read_items
    from celeus.runs.proposals import Proposals as Proposals

_HOMES = {
    "AsyncClient": "client.asynchronous",
    "AsyncSession": "client.asynchronous",
    "Client": "client.blocking",
    "JudgeResult": "client.label_loop",
    "NeedsAnswer": "errors",
    "Pool": "client.results",
    "Problem": "client.refusals",
    "Proposals": "runs.proposals",
    "Refusal": "errors",
    "Session": "client.blocking",
    "Status": "client.results",
    "Turn": "client.label_loop",
    "Unreachable": "client.refusals",
    "best": "runs.certify",
    "certify": "runs.certify",
    "compare": "runs.certify",
    "judge_check": "runs.certify",
    "read_items": "runs.items",
}
"""Modules of the public names; imported on first use, since httpx2 takes long to import."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
