"""Simulation and studies: the same core, no server."""
