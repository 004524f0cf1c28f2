"""What operations share: context, cached states, concurrency gates, workers."""
