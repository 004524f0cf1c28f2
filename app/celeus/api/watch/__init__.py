"""Who asked what, how long it took and where the time went: ids, log, metrics, traces."""
