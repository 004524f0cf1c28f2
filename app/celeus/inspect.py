"""Inspect AI driven by a session: it runs the samples that are drawn, until the score is known."""

try:
    from celeus.harnesses.inspect_items import items
    from celeus.harnesses.inspect_registry import certified_task
    from celeus.harnesses.inspect_tasks import certified, compared
except ImportError as missing:
    needed = "celeus.inspect needs Inspect 0.3.250 or later: pip install -U inspect-ai"
    raise ImportError(needed) from missing

__all__ = ["certified", "certified_task", "compared", "items"]
