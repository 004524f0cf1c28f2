"""Deletion of sessions, and the tombstones left of them."""
