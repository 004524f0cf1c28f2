"""Celeus: certifies evaluation scores by intervals that hold at every moment."""
