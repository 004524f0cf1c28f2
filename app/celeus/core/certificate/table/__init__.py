"""Certificates of sessions that make many claims about a table."""
