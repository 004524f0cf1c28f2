"""The report on a session: one page to read, keep, print and pass on."""
