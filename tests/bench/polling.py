"""The process that asks a server for a sign of life every 5 ms, until its standard input ends.

    python -m tests.bench.polling URL

Then it prints the seconds that every answer took, as JSON. A poll that a pause of the server
delays delays the next ones: a pause is one long answer, not many.
"""

import http.client
import json
import select
import sys
import time
from urllib.parse import urlsplit

EVERY_SECONDS = 0.005


def main() -> None:
    """Poll, then answer."""
    place = urlsplit(sys.argv[1])
    connection = http.client.HTTPConnection(f"{place.hostname}:{place.port}", timeout=120)
    seconds = []
    due = time.perf_counter()
    while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        now = time.perf_counter()
        seconds.append(now - began)
        due = max(due + EVERY_SECONDS, now)
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main()
