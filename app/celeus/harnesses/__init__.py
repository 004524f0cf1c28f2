"""Evaluation harnesses driven by a session: they run what it draws, and it hears the losses."""
