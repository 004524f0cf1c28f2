"""Uploaded rows: what one must be and mean before it becomes an item of a pool."""
