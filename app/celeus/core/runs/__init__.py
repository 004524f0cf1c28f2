"""Runs: the file of a session in a process of its own, and what it has to show to be believed."""
