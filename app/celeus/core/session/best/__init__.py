"""The best of k systems: one process a system, on judgements that give the losses of all.

See docs/evidence/method.md#15-the-best-of-k-systems.
"""
