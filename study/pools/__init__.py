"""Pools whose losses are known: real models' results, and made-up ones."""
