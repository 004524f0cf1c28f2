"""A model behind `POST /chat/completions`: tries again, spares what it lacks, counts costs."""

import math
import os
import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import httpx2

from celeus.client.service import plain, reason, seconds
from celeus.errors import InvalidValue, Unauthenticated, Unavailable

OPENAI = "https://api.openai.com/v1"
REQUEST_SECONDS = 120.0
MOST_CALLS = 128
TRIES = 7
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_WAIT = 120.0
"""Seconds; an endpoint that asks for a longer pause is not asked again in this run."""
PASSING = frozenset({408, 409, 429})
SERVER_ERRORS = 500
DECLINED = frozenset({400, 422})
TOP, FEWER = 20, 5
"""Alternatives to a token: what is asked for, and what the others give."""
SPARED = {
    "logprobs": ("logprobs",),
    "response_format": ("response_format", "json_schema", "structured output"),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "max_completion_tokens": ("max_completion_tokens",),
}
"""Members of a request, and the words by which an endpoint may decline them; it is then asked
without."""
PER_PRICE = 1e6

_TOO_LONG = re.compile(r"context.{0,20}length|too long|content.?(filter|management)", re.IGNORECASE)


class Unfinished(Unavailable):
    """Raised when there is more to judge: run the command again."""


class NoAnswer(Exception):
    """Raised when the endpoint gives no answer to this text; the message says why."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens in and out, and the most that may be spent, if any."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    most: float | None = None

    def __post_init__(self) -> None:
        given = (self.tokens_in, self.tokens_out, self.most or 0.0)
        if not all(map(math.isfinite, given)):
            # Neither above nor below any limit, so that none would be kept
            raise InvalidValue("prices and --max-cost must be finite numbers", field="max_cost")
        if self.most is not None and not self.tokens_in and not self.tokens_out:
            raise InvalidValue("--max-cost needs --price", field="max_cost")


@dataclass(slots=True)
class Usage:
    """Counts of calls answered, retries and tokens used."""

    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0

    def cost(self, prices: Prices) -> float:
        """Return the cost in dollars; tokens from the endpoint's cache count in full."""
        of_all = self.tokens_in * prices.tokens_in + self.tokens_out * prices.tokens_out
        return of_all / PER_PRICE


class Endpoint:
    """A model at an address that speaks as OpenAI's does; threads may share it.

    What goes wrong is a Refusal, `Unfinished` where another run may come to an end. No message
    holds the key.
    """

    def __init__(
        self, url: str, key: str | None, model: str, prices: Prices, *, key_env: str = ""
    ) -> None:
        self._url = _checked(url)
        self._key = key or "none"
        self._key_env = key_env
        self.model = model
        self.prices = prices
        self.spent = Usage()
        self._spared: set[str] = set()
        self._top = TOP
        self._lock = threading.Lock()
        self._ended = threading.Event()
        limits = httpx2.Limits(max_connections=MOST_CALLS, max_keepalive_connections=MOST_CALLS)
        self._http = httpx2.Client(
            timeout=REQUEST_SECONDS,
            limits=limits,
            headers={"Authorization": f"Bearer {self._key}"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._http.close()

    def end(self) -> None:
        """Stop all waiting for retries; calls under way are still answered."""
        self._ended.set()

    @property
    def seeded(self) -> bool:
        """True if another seed makes another request."""
        return "seed" not in self._spared

    def request(self, prompt: str, schema: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
        """All that is asked for; what the endpoint declined is left out when it is sent."""
        named = {"name": "verdict", "strict": True, "schema": schema}
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0.0,
            "seed": seed,
            "max_completion_tokens": 4096,
            "response_format": {"type": "json_schema", "json_schema": named},
            "logprobs": True,
            "top_logprobs": TOP,
        }

    def choice(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The first choice of the answer; raises NoAnswer for a text that it takes from nobody."""
        why, asked = "", 0.0
        for attempt in range(TRIES):
            if attempt:
                self._wait(attempt, asked, why)
            self._check_cost()
            try:
                answer = self._sent(request)
            except httpx2.HTTPError as error:
                why, asked = f"{self._url} cannot be reached: {reason(error)}", 0.0
                continue
            if answer.status_code not in PASSING and answer.status_code < SERVER_ERRORS:
                found = self._read(answer)
                if found is not None:
                    return found
                why, asked = f"{self._url} answers with something that is no completion", 0.0
                continue
            why, asked = self._words(answer), _asked(answer.headers)
            if "insufficient_quota" in answer.text:
                break
        raise self._unfinished(why)

    def _sent(self, request: Mapping[str, Any]) -> httpx2.Response:
        while True:
            body = self._taken(request)
            answer = self._http.post(f"{self._url}/chat/completions", json=body)
            if answer.status_code not in DECLINED or not self._spare(answer.text, body):
                return answer

    def _taken(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request without what this endpoint has declined."""
        with self._lock:
            spared = self._spared | ({"top_logprobs"} if "logprobs" in self._spared else set())
            body = {name: value for name, value in request.items() if name not in spared}
            return body | {"top_logprobs": self._top} if "top_logprobs" in body else body

    def _spare(self, text: str, body: Mapping[str, Any]) -> bool:
        """Leave out from now on what an endpoint declines by name; whether that is anything."""
        words = text.lower()
        name = next(
            (
                member
                for member, declined in SPARED.items()
                if member in body and any(word in words for word in declined)
            ),
            None,
        )
        if name is None:
            return False
        with self._lock:
            if name == "logprobs" and body["top_logprobs"] > FEWER and "top_logprobs" in text:
                self._top = FEWER
            else:
                self._spared.add(name)
        return True

    def _read(self, answer: httpx2.Response) -> dict[str, Any] | None:
        """The choice in an answer that is final, None where it is broken and may be asked again."""
        if not answer.is_success:
            self._decline(answer)
        try:
            document = answer.json()
            choice = document["choices"][0]
            usage = document.get("usage") or {}
            self._count(usage)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            return None
        return choice if isinstance(choice, dict) else None

    def _count(self, usage: Mapping[str, Any]) -> None:
        counted = {"prompt_tokens", "completion_tokens"} <= {*usage}
        if not counted and self.prices.most is not None:
            raise InvalidValue(
                f"{self._url} does not say how many tokens it used, so that --max-cost cannot be"
                " kept: leave it out",
                field="max_cost",
            )
        details = usage.get("prompt_tokens_details") or {}
        with self._lock:
            self.spent.calls += 1
            self.spent.tokens_in += int(usage.get("prompt_tokens") or 0)
            self.spent.tokens_out += int(usage.get("completion_tokens") or 0)
            self.spent.cached += int(details.get("cached_tokens") or 0)

    def _decline(self, answer: httpx2.Response) -> NoReturn:
        status = answer.status_code
        if status in {401, 403}:
            place = f"put one that works in {self._key_env}" if self._key_env else "give another"
            raise Unauthenticated(f"{self._url} refuses the key ({status}): {place}")
        if status in DECLINED and _TOO_LONG.search(answer.text):
            raise NoAnswer(self._words(answer))
        hint = ": is this the address, and --model a model of it?" if status == 404 else ""
        raise InvalidValue(f"{self._words(answer)}{hint}", field="model")

    def _words(self, answer: httpx2.Response) -> str:
        """The endpoint's own words, on one line."""
        try:
            error = answer.json()["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError, RecursionError):
            text = answer.reason_phrase
        words = plain(text.replace(self._key, "…"))
        return f"{self._url} answers {answer.status_code}: {words}"

    def _wait(self, attempt: int, asked: float, why: str) -> None:
        if asked > LONGEST_WAIT:
            raise self._unfinished(f"{why} (it asks to be left alone for {asked:.0f} seconds)")
        with self._lock:
            self.spent.retries += 1
        backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))
        pause = (asked or backoff) * random.uniform(1.0, 1.5)  # noqa: S311 -- spreads calls in time
        if self._ended.wait(pause):
            raise self._unfinished(why)

    def _unfinished(self, why: str) -> Unfinished:
        return Unfinished(f"{why}; run the command again later, it goes on where it stopped")

    def _check_cost(self) -> None:
        if self._ended.is_set():
            raise self._unfinished("the run is being ended")
        with self._lock:
            cost, calls = self.spent.cost(self.prices), self.spent.calls
        if self.prices.most is not None and cost >= self.prices.most:
            raise Unfinished(
                f"--max-cost is spent: ${cost:.4f} for {calls} calls; run the command again with"
                " more, it goes on where it stopped"
            )


def _checked(url: str) -> str:
    rule = f"an address such as {OPENAI}"
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        parts = httpx2.URL("")
    if parts.scheme not in {"http", "https"} or not parts.host or parts.userinfo:
        raise InvalidValue(f"base_url must be {rule}", field="base_url", rule=rule)
    return url.rstrip("/")


def _asked(headers: Mapping[str, str]) -> float:
    """Return the seconds an endpoint asks to wait before the next request."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000.0)
    except (KeyError, ValueError):
        pass
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return seconds(headers.get("retry-after"))


def key_of(name: str) -> str | None:
    """The key in an environment variable; refuses one that no header can hold."""
    key = os.environ.get(name) or None
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidValue(f"{name} holds characters that no key has", field="key_env")
    return key
