"""Celeus for agents: tools of the Model Context Protocol."""
