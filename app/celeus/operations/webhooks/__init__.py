"""Webhooks: the events that are reported, and how each message reaches its receiver."""
