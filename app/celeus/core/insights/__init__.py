"""Insights that nothing certified rests on: forecasts, planning, surrogate diagnostics."""
