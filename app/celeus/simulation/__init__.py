"""Simulated sessions on files with known losses: `celeus dev simulate` and backtests of logs."""
