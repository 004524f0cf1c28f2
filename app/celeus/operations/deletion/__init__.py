"""What is deleted for good, and what is left of it."""
