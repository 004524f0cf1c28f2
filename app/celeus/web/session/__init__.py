"""The page of a session: what is read on it is rendered here, and swapped while it is open."""
