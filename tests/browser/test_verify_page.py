"""The page that checks a certificate's file without a service, opened from the disk."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from celeus.core.canonical import canonical_json
from celeus.core.certificate.document import signed
from celeus.core.certificate.ed25519 import public_of
from tests.core.certifying import KEY, OTHER_KEY
from tests.golden.make_certificates import FOLDER

pytestmark = pytest.mark.nightly

PAGE = Path(__file__).parents[2] / "docs" / "verify.html"
FINAL = FOLDER / "sharp-ahead.zero_one.final.json"
VALID = [FINAL, FOLDER / "table-each.tabled.interim.json"]
PUBLIC = public_of(KEY).hex()
SIGNED = "The file is as its signer signed it; whether its claim holds was not computed"


def resigned(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A certificate changed by whoever has its key."""
    document = json.loads(FINAL.read_bytes())
    del document["signature"]
    change(document)
    return signed(document, KEY)


def spoilt(change: Callable[[dict[str, Any]], object]) -> bytes:
    """A certificate changed by somebody else."""
    document = json.loads(FINAL.read_bytes())
    change(document)
    return canonical_json(document)


def by_anybody(document: dict[str, Any]) -> None:
    """Put in a key of small order, and a signature that fits every message."""
    document["signature"] |= {"public_key": "01" + "00" * 31, "value": "01" + "00" * 63}


FORGED = {
    "claim": (spoilt(lambda it: it["claim"].update(alpha=0.01)), "the signature is not"),
    "loss": (
        resigned(lambda it: it["ledger"][1].update(loss=1 - it["ledger"][1]["loss"])),
        "chain.head",
    ),
    "plan": (resigned(lambda it: it["plan"].update(alpha=0.1)), "plan_digest is"),
    "final": (resigned(lambda it: it.update(final=0, kind="interim")), "final is 0"),
    "seed kept": (
        resigned(lambda it: it.update(final=False, kind="interim")),
        "seed is ",
    ),
    "seed": (resigned(lambda it: it.update(seed=sha256(b"another").hexdigest())), "commitment is"),
    "key": (spoilt(by_anybody), "everybody can sign"),
    "spelling": (FINAL.read_bytes() + b"\n", "canonical JSON"),
    "form": (resigned(lambda it: it.update(ledger=None)), "not the form of a certificate"),
}


def verdict_on(browser: Browser, content: bytes, key: str = "") -> tuple[str, list[str]]:
    context = browser.new_context()
    try:
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(PAGE.as_uri())
        page.get_by_label("Public key").fill(key)
        file = FilePayload(name="c.json", mimeType="application/json", buffer=content)
        page.get_by_label("Certificate").set_input_files(file)
        expect(page.locator("#rest")).to_be_visible()
        assert complaints == []
        return page.inner_text("#verdict"), page.locator("#checks li").all_inner_texts()
    finally:
        context.close()


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_a_certificate_is_as_it_was_signed_and_no_more_is_said(
    browser: Browser, path: Path
) -> None:
    verdict, checks = verdict_on(browser, path.read_bytes(), PUBLIC)
    assert verdict == f"{SIGNED}."
    assert (len(checks), checks[-1]) == (5, "signed by the key you gave")
    seed = "has the hash that this file states" if path == FINAL else "is not revealed yet"
    assert checks[-2].endswith(f"the seed {seed}")
    verdict, checks = verdict_on(browser, path.read_bytes())
    assert verdict == f"{SIGNED}; whose key it is, the file cannot show."
    assert checks[-1] == f"signed by {PUBLIC}: whose key that is, the file cannot show"


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_does_not_hold(browser: Browser, name: str) -> None:
    content, words = FORGED[name]
    verdict, _ = verdict_on(browser, content)
    assert verdict.startswith("Does not hold: ")
    assert words in verdict


def test_a_certificate_by_another_key_is_not_the_one_trusted(browser: Browser) -> None:
    verdict, _ = verdict_on(browser, FINAL.read_bytes(), public_of(OTHER_KEY).hex())
    assert verdict.startswith("Does not hold: signature.public_key is ")


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG", b'{"format":"sarif"}', FINAL.read_bytes()[:-9]]
)
def test_another_file_cannot_be_checked(browser: Browser, content: bytes) -> None:
    verdict, checks = verdict_on(browser, content)
    assert (verdict.startswith("Cannot be checked: the file is no "), checks) == (True, [])
