"""How often each attack was tried: counted by the tests, printed at the end of a run."""

from collections import Counter

TRIES: Counter[str] = Counter()
"""Of this run: the summary is written where no fixture reaches."""
