"""Evaluation harnesses that a session drives: only what is drawn is run."""
