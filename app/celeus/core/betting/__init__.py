"""E-processes: signals, betting fractions, wealth, and the confidence sequences they give."""
