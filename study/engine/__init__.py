"""Sessions with known losses, and a runner that keeps every result."""
