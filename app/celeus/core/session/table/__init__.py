"""Many claims from one stream of draws: several metrics, and groups.

See docs/evidence/method.md#17-several-metrics-on-one-stream and docs/evidence/method.md#18-groups.
"""
