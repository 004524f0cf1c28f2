"""Sampling: proposals, calibrated surrogates, and sums that keep their digits."""
