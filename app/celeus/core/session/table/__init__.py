"""Many claims from one stream of draws: several metrics, and groups.

See docs/method.md#17-several-metrics-on-one-stream and docs/method.md#18-groups.
"""
