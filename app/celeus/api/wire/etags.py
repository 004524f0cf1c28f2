"""ETags: what a caller has already is not sent again."""

from starlette.requests import Request


def still_holds(request: Request, etag: str) -> bool:
    """The caller has the answer of this ETag already; weak or strong makes no difference."""
    given = request.headers.get("if-none-match", "")
    known = [tag.strip().removeprefix("W/") for tag in given.split(",")]
    return etag.removeprefix("W/") in known or "*" in known


def weak(etag: str) -> dict[str, str]:
    """Headers of a document that is asked for anew each time and need not be sent again.

    Weak: its members may come in another order though it says the same.
    """
    return {"ETag": f"W/{etag}", "Cache-Control": "no-cache"}
