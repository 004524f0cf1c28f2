"""Compression of the answers that are the same for every caller, and of no others.

The size of a compressed answer tells of a secret in it beside text that others chose (BREACH), and
pages, labels and sessions hold what judges and uploads wrote.
"""

import re

from starlette.datastructures import Headers

VARY = {"Vary": "Accept-Encoding"}
GZIP = VARY | {"Content-Encoding": "gzip"}
_REFUSED = re.compile(r"q=0(\.0*)?")


def takes_gzip(headers: Headers) -> bool:
    """Return whether the client accepts gzip (RFC 9110, section 12.5.3)."""
    for coding in headers.get("Accept-Encoding", "").lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";")
        if name == "gzip":
            return _REFUSED.fullmatch(weight) is None
    return False
