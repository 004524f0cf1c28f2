"""An endpoint that speaks as OpenAI's does: a real HTTP server, the same for the same questions.

A text asks "Q 17"; the judge's probability that the answer is wrong follows from the number alone.
"""

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-of-the-test"
TOKENS_IN, TOKENS_OUT = 120, 12
Choice = dict[str, Any]


def unit(*parts: object) -> float:
    """A number in [0, 1) that is the same for the same parts for ever."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def number_of(text: str) -> int:
    """Which question a text asks."""
    (number,) = re.findall(r"Q (\d+)", text)
    return int(number)


def wrong(number: int) -> float:
    """How likely the judge finds it that the answer to a question is wrong."""
    return 0.02 + 0.96 * unit("wrong", number)


def token(text: str, alternatives: dict[str, float] | None = None) -> dict[str, Any]:
    """A token as it is told with its alternatives and their probabilities."""
    tokens = [
        {"token": alternative, "logprob": math.log(share), "bytes": None}
        for alternative, share in (alternatives or {text: 1.0}).items()
    ]
    return {"token": text, "logprob": tokens[0]["logprob"], "bytes": None, "top_logprobs": tokens}


def item(number: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- members of an item
    """An item that asks a question by number."""
    return {"id": f"q-{number}", "payload": {"question": f"Q {number}", "answer": "A"}, **more}


def choice(text: str, tokens: list[dict[str, Any]] | None = None) -> Choice:
    """What a model says, with the tokens that it is made of."""
    logprobs = {"content": tokens, "refusal": None} if tokens is not None else None
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}


def spoken(verdict: str, alternatives: dict[str, float], why: str = "so it is") -> Choice:
    """A verdict after a reason, in the form that was asked for."""
    tokens = ['{"', "reason", '":"', why, '","', "verdict", '":"']
    text = "".join(tokens) + verdict + '"}'
    return choice(text, [*map(token, tokens), token(verdict, alternatives), token('"}')])


def usual(body: dict[str, Any]) -> Choice:
    """A verdict on the one answer that is asked about."""
    share = wrong(number_of(body["messages"][-1]["content"]))
    verdict = "wrong" if share > 0.5 else "correct"
    return spoken(verdict, {"wrong": share, "correct": 1.0 - share})


@dataclass
class Behaviour:
    """How an endpoint behaves; ``lacks`` are members of requests that it declines by name."""

    judge: Callable[[dict[str, Any]], Choice] = usual
    lacks: tuple[str, ...] = ()
    most_alternatives: int = 20
    busy: float = 0.0
    broken: float = 0.0
    torn: float = 0.0
    always: tuple[int, dict[str, Any], dict[str, str]] | None = None
    pause: float = 0.0
    usage: bool = True


@dataclass
class Running:
    """A running endpoint: where it is, how it behaves, and every request it was sent."""

    url: str
    behaviour: Behaviour
    bodies: list[dict[str, Any]] = field(default_factory=list)
    answered: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def endpoint(**behaviour: Any) -> Iterator[Running]:  # noqa: ANN401 -- members of Behaviour
    """An endpoint at a free port."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.running = Running(url, Behaviour(**behaviour))  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.running  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        running: Running = self.server.running  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(body["messages"])
        with running.lock:
            running.bodies.append(body)
            running.seen[text] = seen = running.seen.get(text, 0) + 1
        status, content, headers = self._answer(running, body, text, seen)
        if status == 200:
            with running.lock:
                running.answered += 1
        self._send(status, content, headers)

    def _answer(
        self, running: Running, body: dict[str, Any], text: str, seen: int
    ) -> tuple[int, bytes, dict[str, str]]:
        how = running.behaviour
        if self.headers["Authorization"] != f"Bearer {KEY}":
            return _error(401, f"Incorrect API key provided: {self.headers['Authorization']}")
        if how.always is not None:
            status, content, headers = how.always
            return status, json.dumps(content).encode(), headers
        if seen == 1 and unit("busy", text) < how.busy:
            return _error(429, "slow down", {"retry-after-ms": "20"})
        lacking = next((name for name in how.lacks if name in body), None)
        if lacking is not None:
            return _error(400, f"Unsupported parameter: '{lacking}' is not supported")
        if body.get("top_logprobs", 0) > how.most_alternatives:
            return _error(400, f"top_logprobs must be at most {how.most_alternatives}")
        time.sleep(how.pause)
        whole = json.dumps(_completion(how, body, text)).encode()
        return 200, whole[:-5] if seen == 1 and unit("torn", text) < how.torn else whole, {}

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _error(
    status: int, message: str, headers: dict[str, str] | None = None
) -> tuple[int, bytes, dict[str, str]]:
    error = {"message": message, "type": "error", "param": None, "code": None}
    return status, json.dumps({"error": error}).encode(), headers or {}


def _completion(how: Behaviour, body: dict[str, Any], text: str) -> dict[str, Any]:
    answer = how.judge(body)
    if unit("broken", text) < how.broken:
        answer["message"]["content"] = answer["message"]["content"][:-9]
    if not body.get("logprobs"):
        answer["logprobs"] = None
    usage = {
        "prompt_tokens": TOKENS_IN,
        "completion_tokens": TOKENS_OUT,
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [answer],
        **({"usage": usage} if how.usage else {}),
    }
