"""Pools: rows and their validation, losses, surrogate scores, strata and the pool's digest."""
