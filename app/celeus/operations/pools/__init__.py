"""Pools: imports, stored columns and records."""
