"""Webhooks: the events that others are told of, and how each message reaches them."""
