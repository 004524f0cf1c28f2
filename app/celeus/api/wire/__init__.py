"""What all routes share on the wire: problems, limits, idempotency, ETags, uploads, metrics."""
