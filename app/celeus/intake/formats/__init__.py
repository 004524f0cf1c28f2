"""Logs and exports of the tools that people work in, a module each."""
