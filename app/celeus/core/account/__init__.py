"""The account of alpha: what several claims promise together, also to who picks after looking.

See docs/evidence/method.md#19-the-account-of-alpha.
"""
