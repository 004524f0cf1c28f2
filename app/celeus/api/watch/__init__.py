"""Observation of requests and their time: ids, log, metrics, traces."""
