"""The account of alpha: the guarantee of several claims together, and of claims picked later.

See docs/evidence/method.md#19-the-account-of-alpha.
"""
