"""Parts that all routes share: problems, limits, idempotency, ETags, uploads, metrics."""
