"""Chats in the forms that models and tools write them."""

import base64
import io
import json
import wave
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import all_sent, events, session_of, visit
from tests.browser.site import NARROW, WIDE, Site
from tests.browser.test_label_items import picture

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
TRAIN = {"from": "Wien", "to": "Graz", "date": "2026-11-24"}
PRICE = {"trains": [{"leaves": "07:58", "price": 39.8}]}


def sound() -> str:
    """A tenth of a second of silence, as WAV."""
    kept = io.BytesIO()
    with wave.open(kept, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(8000)
        written.writeframes(bytes(1600))
    return base64.b64encode(kept.getvalue()).decode()


OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a travel agent."},
    {"role": "user", "content": "How much is *Vienna* to Graz?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "search_trains", "arguments": json.dumps(TRAIN)},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(PRICE)},
    {"role": "assistant", "content": "It is **39.80 €**.\n\n- at 07:58"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "How much is *Vienna* to Graz?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "I need a tool."},
            {"type": "tool_use", "id": "call_1", "name": "search_trains", "input": TRAIN},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": json.dumps(PRICE)},
        ],
    },
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "It is **39.80 €**.\n\n- at 07:58"}],
    },
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "How much is *Vienna* to Graz?"}]},
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "search_trains",
        "arguments": json.dumps(TRAIN),
    },
    {"type": "function_call_output", "call_id": "call_1", "output": json.dumps(PRICE)},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It is **39.80 €**.\n\n- at 07:58"}],
    },
]
GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "How much is *Vienna* to Graz?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "search_trains", "args": TRAIN}}]},
    {
        "role": "function",
        "parts": [{"functionResponse": {"name": "search_trains", "response": PRICE}}],
    },
    {"role": "model", "parts": [{"text": "It is **39.80 €**.\n\n- at 07:58"}]},
]


@pytest.mark.parametrize(
    "messages",
    [OPENAI, ANTHROPIC, RESPONSES, GEMINI],
    ids=["openai", "anthropic", "responses", "gemini"],
)
def test_a_chat_with_tools_is_read_as_it_went(
    server: Site, signed_in: SignedIn, messages: list[dict[str, Any]]
) -> None:
    page = signed_in("label")
    visit(page, session_of(server, [{"messages": messages}]))
    expect(page.locator(".payload-message.user em").first).to_have_text("Vienna")
    call = page.locator(".payload-call", has_text="Calls search_trains")
    expect(call).to_contain_text('"to": "Graz"')
    results = page.locator(".payload-message", has_text='"price": 39.8')
    expect(results).to_have_count(1)
    expect(results.get_by_role("heading")).to_contain_text("search_trains", ignore_case=True)
    last = page.locator(".payload-message.last")
    expect(last).to_have_count(1)
    expect(last.get_by_role("heading")).to_contain_text("Assistant, the last reply")
    expect(last.locator("strong")).to_have_text("39.80 €")
    expect(last.locator("li")).to_have_text("at 07:58")


def test_prompts_of_the_system_thoughts_and_long_arguments_are_folded(
    server: Site, signed_in: SignedIn
) -> None:
    code = {"code": "print(1)\n" * 200}
    messages = [
        OPENAI[0],
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "First look."},
                {"type": "tool_use", "name": "python", "input": code},
            ],
        },
    ]
    page = signed_in("label")
    item = visit(page, session_of(server, [{"chat": messages}]))
    for summary, told in (
        ("System prompt", "You are a travel agent."),
        ("Thoughts", "First look."),
        ("Calls python", "print(1)"),
    ):
        expect(item.get_by_text(told)).to_be_hidden()
        item.locator("summary", has_text=summary).focus()
        page.keyboard.press("Enter")
        expect(item.get_by_text(told)).to_be_visible()


def test_sharegpt_and_langchain_say_who_speaks_in_their_own_words(
    server: Site, signed_in: SignedIn
) -> None:
    chats: list[dict[str, Any]] = [
        {"conversations": [{"from": "human", "value": "Hello?"}, {"from": "gpt", "value": "Yes."}]},
        {"Dialog": [{"type": "human", "content": "Hello?"}, {"type": "ai", "content": "Yes."}]},
        {"prompt": [{"role": "user", "content": "Hello?"}], "response": "Yes."},
    ]
    page = signed_in("label")
    for chat in chats:
        visit(page, session_of(server, [chat]))
        expect(page.locator(".payload-message.user")).to_contain_text("Hello?")
        judged = ".payload-answer" if "response" in chat else ".payload-message.last"
        expect(page.locator(judged)).to_contain_text("Yes.")
        assert page.locator(".last").count() == ("response" not in chat)


def test_pictures_and_sounds_in_a_chat_are_shown_and_played(
    server: Site, signed_in: SignedIn
) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": picture()}},
        {"type": "input_audio", "input_audio": {"data": sound(), "format": "wav"}},
        {"type": "strange", "what": 1},
    ]
    page = signed_in("label")
    visit(page, session_of(server, [{"messages": [{"role": "user", "content": content}]}]))
    expect(page.get_by_role("img", name="Picture of item item-0")).to_be_visible()
    audio = page.locator("audio")
    page.wait_for_function("one => one.readyState > 0", arg=audio.element_handle())
    expect(page.locator(".payload-message")).to_contain_text('"strange"')


def test_what_is_no_chat_is_shown_as_it_is(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    visit(page, session_of(server, [{"messages": [{"role": "user", "content": "a"}, "b"]}]))
    expect(page.locator(".payload-json")).to_contain_text('"b"')


@pytest.mark.parametrize(("viewport", "scheme"), [(NARROW, "dark"), (WIDE, "light")])
def test_axe_finds_nothing_serious_in_a_chat(
    server: Site, signed_in: SignedIn, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in("label", viewport=viewport, color_scheme=scheme)
    visit(page, session_of(server, [{"messages": [*OPENAI, *ANTHROPIC], "image": picture()}]))
    page.locator(".payload-message.last strong").wait_for()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("viewport", [NARROW, {"width": 844, "height": 390}, WIDE])
def test_a_chat_opens_at_the_reply_that_is_judged(
    server: Site, signed_in: SignedIn, viewport: dict[str, int]
) -> None:
    messages = [{"role": "system", "content": "You are a shop."}]
    for turn in range(12):
        messages.append({"role": "user", "content": f"Question {turn}? " + "Really, now? " * 30})
        messages.append({"role": "assistant", "content": f"Answer {turn}. " + "So it is. " * 30})
    session = session_of(server, [{"messages": messages}] * 2)
    page = signed_in("label", viewport=viewport)
    item = visit(page, session)
    reply = item.locator(".payload-message.last")
    expect(reply).to_contain_text("Answer 11.")
    dock = page.locator("#dock").bounding_box()
    box = reply.bounding_box()
    assert box is not None
    assert dock is not None
    assert 0 <= box["y"] < dock["y"] - 30
    expect(item.locator(".payload-message")).to_have_count(2)
    item.get_by_text("23 earlier messages").click()
    expect(item.get_by_text("Question 3?")).to_be_visible()
    assert barriers(page) == []


def test_a_reply_below_is_not_judged_before_it_was_seen(server: Site, signed_in: SignedIn) -> None:
    payload = {"question": "And then?\n" * 40, "answer": "Nothing more."}
    session = session_of(server, [payload] * 4)
    page = signed_in("label", viewport=NARROW)
    item = visit(page, session)
    told = page.locator("#unseen")
    shown = item.get_attribute("data-round")
    page.get_by_role("button", name="Correct").click()
    expect(told).to_be_visible()
    expect(item).to_have_attribute("data-round", shown or "")
    expect(item.get_by_text("Nothing more.")).to_be_in_viewport()
    # What was seen once may be judged from anywhere
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("button", name="Wrong").click()
    expect(item).not_to_have_attribute("data-round", shown or "")
    expect(told).to_be_hidden()
    page.keyboard.press("u")
    page.keyboard.press("1")
    expect(page.locator("#count")).to_have_text("2")
    all_sent(page)
    assert [event["loss"] for event in events(server, session, "observation")] == [1]
