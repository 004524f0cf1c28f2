"""Logs of evaluations that have been run, as rows of one type, whichever tool wrote them."""
