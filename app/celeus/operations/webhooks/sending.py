"""One attempt to send one message: guarded, bounded in time and bytes, following no redirection."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from celeus.errors import InvalidValue
from celeus.operations.webhooks.addresses import AddressRefused, Guard

CONNECT_SECONDS = 5.0
SECONDS = 15.0
"""From the look-up of the name to the end of the answer."""
MOST_READ = 64 << 10
KEPT_BYTES = 1_000
LONGEST_WAIT_SECONDS = 36_000
GONE = 410


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back: the status, the beginning of the answer, and what is to be said of it.

    ``status`` is None where nothing did. ``retry_after``: when to try again, as the receiver said.
    """

    status: int | None = None
    answer: str | None = None
    note: str | None = None
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more."""
        return self.status == GONE


class Sender:
    """Sends messages; one for a process."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._tls = ssl.create_default_context()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Send a message; never raises for what a receiver does."""
        head: list[Outcome] = []
        try:
            async with asyncio.timeout(SECONDS):
                return await self._exchange(url, body, headers, head)
        except TimeoutError:
            late = f"The answer was not complete within {SECONDS:g} s."
        except AddressRefused as refused:
            return Outcome(note=f"Not sent: {refused}.")
        except InvalidValue as refused:
            return Outcome(note=f"Not sent: {refused.line}.")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            late = f"{type(error).__name__}: {error}"[:KEPT_BYTES]
        # Whoever has said that it took the message has it, whatever became of the rest
        return Outcome(head[0].status, head[0].answer, late) if head else Outcome(note=late)

    async def _exchange(
        self, given: str, body: bytes, headers: Mapping[str, str], head: list[Outcome]
    ) -> Outcome:
        url = self.guard.url(given)
        sent = {
            **headers,
            "Host": url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "User-Agent": "Celeus-Webhooks/1",
            # Nothing is unpacked, and no connection kept
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        timeout = httpx2.Timeout(SECONDS, connect=CONNECT_SECONDS)
        addresses = await self.guard.addresses(url)
        async with httpx2.AsyncClient(
            verify=self._tls, trust_env=False, follow_redirects=False, timeout=timeout
        ) as client:
            for last, address in _with_last(addresses):
                request = client.build_request(
                    "POST",
                    # By the address that was looked at; the name is for TLS and for the receiver
                    url.copy_with(host=address),
                    content=body,
                    headers=sent,
                    extensions={"sni_hostname": url.host, "timeout": timeout.as_dict()},
                )
                try:
                    response = await client.send(request, stream=True)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    if last:
                        raise
                    continue
                try:
                    return await _read(response, head)
                finally:
                    await response.aclose()
        raise AddressRefused("its host has no address")


def _with_last(addresses: list[str]) -> list[tuple[bool, str]]:
    return [(place == len(addresses), one) for place, one in enumerate(addresses, start=1)]


async def _read(response: httpx2.Response, head: list[Outcome]) -> Outcome:
    """What a receiver answers, of which not more than MOST_READ is read."""
    status = response.status_code
    note = None
    if 300 <= status < 400:
        note = "The receiver leads elsewhere, and redirections are not followed."
    retry_after = None
    if status in {429, 503} and (wait := response.headers.get("retry-after", "")).isdecimal():
        retry_after = min(float(wait), LONGEST_WAIT_SECONDS)
    head.append(Outcome(status, "", note, retry_after))
    kept, size = b"", 0
    async for part in response.aiter_raw():
        kept += part[: KEPT_BYTES - len(kept)]
        head[0] = Outcome(status, _text(kept), note, retry_after)
        size += len(part)
        if size >= MOST_READ:
            break
    return head[0]


def _text(kept: bytes) -> str:
    """The beginning of an answer as text; the database cannot hold U+0000."""
    return kept.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
