"""The account of alpha in plain words: for one claim, for all, and for those picked later."""

from typing import NamedTuple

from celeus.core.plans.table_plan import Account


class Promises(NamedTuple):
    """Sentences for the guarantee of ``one`` claim, of ``all``, and of those ``picked`` later."""

    one: str
    all: str
    picked: str


def promises(account: Account, alpha: float, claims: int, *, checked: bool = False) -> Promises:
    """Return the guarantees of a plan with this number of ``claims`` under ``account``.

    ``checked``: the claims check a judge, and a yes to all questions is one combined answer.
    """
    each = (
        f"Each interval, taken by itself, holds at every moment with probability at least"
        f" {share(1.0 - alpha)}."
    )
    nothing = "Nothing is promised of all of them at once."
    free = "Of claims picked because of what they say nothing is promised."
    if account == "together":
        return Promises(
            each,
            f"All {claims} intervals hold at once, at every moment, with probability at least"
            f" {share(1.0 - alpha)}.",
            "So do any of them, however they are picked.",
        )
    if account == "selected":
        return Promises(
            each,
            nothing,
            f"Who shows K of the {claims} claims, picked in any way at any time, shows each at"
            f" level {alpha:g} K/{claims}: then at most {share(alpha)} of those shown are false, in"
            " the mean.",
        )
    if account == "closed":
        return Promises(
            each,
            f"With probability at least {share(1.0 - alpha)} none of the answers yes is false, at"
            " any moment.",
            "So is none of those picked among the answers yes.",
        )
    if checked:
        # Yes to all is false only where one answer is, which has that level by itself
        nothing += (
            f" A yes to all questions is false with probability at most {share(alpha)}, at any"
            " moment."
        )
    return Promises(each, nothing, free)


def share(value: float) -> str:
    """Return a share as text, in percent."""
    return f"{100.0 * value:.10g} %"
