"""The numerical core: pure functions and frozen values, without a server."""
