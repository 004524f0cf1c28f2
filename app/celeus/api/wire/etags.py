"""ETags: what a caller has already is not sent again."""

from typing import Annotated

from fastapi import Header

KnownTags = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="ETag of an answer you have: 304 if there is no newer one.",
    ),
]

WantedTag = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="ETag of the answer that the change is meant for: 412 if there is a newer one.",
    ),
]


def still_holds(known: str | None, etag: str) -> bool:
    """The caller has the answer of this ETag already; weak or strong makes no difference."""
    tags = [tag.strip().removeprefix("W/") for tag in (known or "").split(",")]
    return etag.removeprefix("W/") in tags or "*" in tags


def weak(etag: str) -> dict[str, str]:
    """Headers of a document that is asked for anew each time and need not be sent again.

    Weak: its members may come in another order though it says the same.
    """
    return {"ETag": f"W/{etag}", "Cache-Control": "no-cache"}
