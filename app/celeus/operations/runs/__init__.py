"""Runs that are pushed: their files checked, and kept as pools and sessions."""
