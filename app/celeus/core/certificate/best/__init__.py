"""Certificates of sessions that seek the best of several systems."""
