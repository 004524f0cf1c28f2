"""The account of alpha: what several claims promise together, also to who picks after looking.

See docs/method.md#19-the-account-of-alpha.
"""
