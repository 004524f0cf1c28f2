"""Load every module of the service: it fails where one lacks something, and is compiled by it."""

import importlib
import pkgutil

import celeus

OTHER = ("celeus.demo", "celeus.study")
"""What needs other extras."""

for module in pkgutil.walk_packages(celeus.__path__, "celeus."):
    if not module.name.startswith(OTHER):
        importlib.import_module(module.name)
