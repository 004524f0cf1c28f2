"""What the OpenAPI document needs beside what the framework writes."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with its examples as the models have them."""
    schemas = document["components"]["schemas"]
    for model in _models(BaseModel):
        extra = model.model_config.get("json_schema_extra")
        if model.__name__ in schemas and isinstance(extra, dict) and "examples" in extra:
            # The framework leaves out every null, also those of required members
            schemas[model.__name__]["examples"] = extra["examples"]
    return document


def _models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models of the interface that inherit from a model."""
    for model in root.__subclasses__():
        if model.__module__.startswith("celeus.api."):
            yield model
        yield from _models(model)
