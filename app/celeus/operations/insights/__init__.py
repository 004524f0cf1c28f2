"""Insights: surrogate diagnostics, planning by simulation, and the report."""
