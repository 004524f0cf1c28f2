"""`celeus bridge`: what goes wrong is a line, and no secret is in it."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from celeus import Client
from celeus.bridges.tool import Tool
from celeus.commands.bridges import run as bridged
from celeus.errors import InvalidValue
from tests.bridges.desk import Desk
from tests.bridges.test_loop import opened, truly
from tests.cli.calling import Run
from tests.client.pools import exam

SECRET = "secret-of-this-test"  # noqa: S105 -- opens nothing


@pytest.mark.usefixtures("service")
def test_a_tool_without_a_secret_is_refused_before_anything_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    answer = run("bridge", "label-studio", "ses_" + "0" * 32)
    assert answer.status == 1
    assert answer.err.startswith("celeus: there is no secret in LABEL_STUDIO_API_KEY")
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", SECRET)
    for session in ("ses_1", "ses_" + "0" * 32):
        answer = run("bridge", "label-studio", session)
        assert (answer.status, answer.err.count("\n")) == (1, 1)
        assert SECRET not in answer.err


@pytest.mark.parametrize(
    ("tool", "option", "value"),
    [
        ("mlflow", "--tool-url", "http://127.0.0.1:1"),
        *((tool, "--media-hosts", "a.example") for tool in ("mlflow", "langfuse", "langsmith")),
        ("argilla", "--media-hosts", "a.example"),
    ],
)
def test_an_option_that_a_tool_has_no_use_for_is_refused_as_it_is_typed(
    run: Run, monkeypatch: pytest.MonkeyPatch, tool: str, option: str, value: str
) -> None:
    monkeypatch.setenv("CELEUS_MEDIA_HOSTS", "b.example")
    answer = run("bridge", tool, "ses_1", option, value)
    assert answer.status == 1
    assert answer.err == f"celeus: {option} must be left out, as this tool has none\n"
    assert "must be left out" not in run("bridge", tool, "ses_1").err


def test_a_tool_that_is_not_there_is_a_line(
    run: Run, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = client.open_session(client.create_pool("exam", exam(40)[0]), precision=0.3)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", SECRET)
    for url, words in (
        ("http://127.0.0.1:1", "Label Studio cannot be reached at http://127.0.0.1:1"),
        ("ftp://a", "the address of Label Studio must be"),
        ("http://a:b@c", "the address of Label Studio must be"),
    ):
        answer = run("bridge", "label-studio", session.id, "--tool-url", url)
        assert (answer.status, answer.err.count("\n")) == (1, 1)
        assert words in answer.err
        assert SECRET not in answer.err
    answer = run("bridge", "mlflow", session.id)
    assert answer.status == 1
    assert "pip install 'mlflow>=3.14'" in answer.err
    assert session.status().rounds.drawn == 0


def test_what_is_taken_up_is_said(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    session = opened(client, budget=5)
    session.judge(lambda _: 0.0)
    session.change(budget=8)
    bridged(session, Desk(truly), "a desk", 8, 0.01)
    assert f"celeus: taken up: 5 judgements from {session.id}, the last at 20" in caplog.text
    assert session.status().rounds.judged == 8


class Echo(BaseHTTPRequestHandler):
    """Declines, and says again what it was asked with."""

    def do_GET(self) -> None:
        body = f"no: {self.headers['Authorization']}".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_refusal_that_repeats_the_secret_is_shown_without_it() -> None:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.handle_request, daemon=True)
    thread.start()
    signed = {"Authorization": "Token tok_canary0123"}
    url = f"http://127.0.0.1:{server.server_port}"
    with (
        Tool("Echo", url, lambda _: signed, "its token") as tool,
        pytest.raises(InvalidValue, match="no: Token …") as refused,
    ):
        tool.get("/")
    assert "tok_canary0123" not in str(refused.value)
    thread.join()
    server.server_close()
