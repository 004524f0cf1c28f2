"""The application, imported before workers need it and without looking for garbage."""

from celeus.commands.common import uncollected

with uncollected():
    import celeus.main  # noqa: F401 -- what a worker finds there
