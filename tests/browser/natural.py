"""Files as people have them: exported, saved from a spreadsheet, written by a tool."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FIXTURES = Path(__file__).parents[1] / "ecosystem" / "fixtures"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
ROWS = 12


def lines(rows: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def chat(at: int) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": f"What is {at} and {at}?"},
        {"role": "assistant", "content": f"It is {2 * at}."},
    ]


def tree(at: int) -> dict[str, object]:
    """A chat as ChatGPT exports it."""
    asked = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hello?"]}}
    said = {"author": {"role": "assistant"}, "content": {"parts": [f"Reply {at}."]}}
    return {
        "title": f"Chat {at}",
        "conversation_id": f"c-{at}",
        "mapping": {
            "root": {"message": None, "parent": None, "children": ["a"]},
            "a": {"message": asked, "parent": "root", "children": ["b"]},
            "b": {"message": said, "parent": "a", "children": []},
        },
    }


def label_studio(at: int) -> dict[str, object]:
    done = [{"id": at, "result": [{"value": {"choices": ["bad"]}}]}]
    text = f"Review number {at}: it broke after a day."
    return {"id": at, "data": {"text": text}, "annotations": done, "created_at": "2026-11-01"}


def parquet(rows: list[dict[str, object]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def squad(at: int) -> dict[str, object]:
    """A row as Hugging Face has it."""
    return {
        "id": f"sq{at}",
        "title": "Rivers",
        "context": f"The river is {at} km long.",
        "question": "How long is the river?",
        "answers": {"text": [f"{at} km"], "answer_start": [13]},
        "prediction_text": f"{at} km",
    }


def questions() -> bytes:
    """A CSV with a comma, a quote and a line break in its cells."""
    head = "question,answer,expected_answer,category\n"
    cells = (
        f'"What is {at}, doubled?","It is\n""{2 * at}""",{2 * at},{"sums" if at % 2 else "others"}'
        for at in range(ROWS)
    )
    return (head + "\n".join(cells) + "\n").encode()


def excel() -> bytes:
    """What Excel saves as CSV UTF-8 where decimals have a comma."""
    cells = (f"{at};Wie heißt Ort {at}?;Köln, am Rhein;0,{at + 10}" for at in range(ROWS))
    return "\r\n".join(["Nr;Frage;Antwort;Confidence", *cells, ";;;", ""]).encode("utf-8-sig")


def files() -> Iterator[tuple[str, bytes, str, int]]:
    """Name, content, what its first item shows, and how many items there are."""
    at_all = range(ROWS)
    yield "questions.csv", questions(), "What is 0, doubled?", ROWS
    yield "Fragen.csv", excel(), "Wie heißt Ort 0?", ROWS
    pictures = "".join(f'{at},"{PIXEL}",A dot\n' for at in at_all)
    yield "pictures.csv", f"nr,image_url,caption\n{pictures}".encode(), "", ROWS
    chats = [{"conversation": chat(at), "model": "m"} for at in at_all]
    yield "chats.json", json.dumps({"data": chats}).encode(), "It is 0.", ROWS
    exported = json.dumps([tree(at) for at in at_all]).encode()
    yield "conversations.json", exported, "Reply 0.", ROWS
    log = FIXTURES / "lm-eval/small/samples_toy_gen_2026-11-23T04-57-27.200140.jsonl"
    yield log.name, log.read_bytes(), "What is 49+97?", 20
    yield "small.eval", (FIXTURES / "inspect/small.eval").read_bytes(), "which letter?", 12
    yield "out.json", (FIXTURES / "promptfoo/out.json").read_bytes(), "Double 0.", 80
    # What the page takes for two systems at first, going by the word
    outputs = [{"id": at, "prompt": f"Say {at}.", "response": f"answer_a{at}"} for at in at_all]
    outputs[0]["response"] = "See answer_a in the table"
    yield "outputs.parquet", parquet(outputs), "Say 0.", ROWS
    yield "outputs.jsonl.gz", gzip.compress(lines(outputs)), "Say 0.", ROWS
    studio = json.dumps([label_studio(at) for at in at_all], indent=1).encode()
    yield "label-studio.json", studio, "Review number 0", ROWS
    yield "squad.parquet", parquet([squad(at) for at in at_all]), "How long is the river?", ROWS
