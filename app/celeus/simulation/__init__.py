"""Simulated sessions on files whose losses are known: `celeus simulate` and backtests of logs."""
