"""Find the tool that wrote a document by the document's members."""

from collections.abc import Mapping

_MEMBERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("lm-eval", frozenset({"doc_id", "resps"})),
    ("promptfoo", frozenset({"promptIdx", "testIdx"})),
    ("deepeval", frozenset({"testCases"})),
    ("deepeval", frozenset({"testRunData"})),
    ("inspect", frozenset({"eval", "status"})),
    ("swebench", frozenset({"resolved_ids"})),
)
"""Members that tell a document, or the lines of one."""


def tool_of(value: Mapping[str, object]) -> str | None:
    """The tool whose document, or line, has such members; None for none that is known."""
    return next((name for name, members in _MEMBERS if value.keys() >= members), None)
