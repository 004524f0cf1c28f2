"""The waiting time before the oldest draw is handed out again, or the oldest call made again."""

LEAST_BEHIND, BEHIND_EACH = 8, 2
"""Items judged behind it: at least, and for each lease or call at once."""


def is_stalled(behind: int, at_once: int) -> bool:
    """Return whether enough is judged behind the oldest of so many leases or calls ``at_once``."""
    return behind >= max(LEAST_BEHIND, BEHIND_EACH * at_once)
