"""The demo: handwritten digits judged through the HTTP API."""
