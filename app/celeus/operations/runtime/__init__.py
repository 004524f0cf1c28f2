"""The context, cached states, concurrency gates and workers that operations share."""
