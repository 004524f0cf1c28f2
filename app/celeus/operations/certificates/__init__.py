"""Certificates: issue, verify, audit, and the keys that sign them."""
