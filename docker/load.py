"""Load every module of the service: it fails where one lacks something, and is compiled by it."""

import importlib
import pkgutil

import celeus

OTHER = (
    "celeus.agents.mcp_server",
    "celeus.demo",
    "celeus.gates.plugin",
    "celeus.harnesses",
    "celeus.inspect",
    "celeus.operations.certificates.sigstore_bundles",
)
"""Modules that need other extras, or tools of others."""

for module in pkgutil.walk_packages(celeus.__path__, "celeus."):
    if not module.name.startswith(OTHER):
        importlib.import_module(module.name)
