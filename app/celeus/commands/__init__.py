"""The `celeus` command line: one module a group of commands."""
