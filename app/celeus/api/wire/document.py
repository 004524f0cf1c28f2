"""Complete the OpenAPI document that the framework writes."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from celeus.operations.runtime.caller_cache import SCOPES

TAGS = [
    {"name": name, "description": description}
    for name, description in (
        ("system", "Health, version, metrics, and this document."),
        ("pools", "Pools of items: upload, sealing, and planning of the labels that they need."),
        ("sessions", "Sessions on sealed pools: their claim, status, changes and deletion."),
        ("rounds", "The loop of a judge: draw, judge, release, correct."),
        ("history", "The events of a session: trajectory, ledger, labels, comments, reports."),
        ("insights", "What a session tells beside its interval, and tables of claims."),
        ("certificates", "Signed certificates: issue, fetch and verify."),
        ("access", "Keys of programs, and invitations by which people sign in."),
        ("webhooks", "Messages about sessions, their signatures and deliveries."),
        ("sharing", "Links that show the report of a session without a key."),
    )
]
"""Tags of the operations, in the order of the reference."""


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with examples as the models have them, and a scheme for each scope."""
    schemas = document["components"]["schemas"]
    for model in _models(BaseModel):
        extra = model.model_config.get("json_schema_extra")
        if model.__name__ in schemas and isinstance(extra, dict) and "examples" in extra:
            # The framework leaves out every null, also those of required members
            schemas[model.__name__]["examples"] = extra["examples"]
    _name_scopes(document)
    return document


def _name_scopes(document: dict[str, Any]) -> None:
    """Make each scope a security scheme: tools allow scopes in schemes of OAuth 2 alone."""
    schemes = document["components"]["securitySchemes"]
    key = schemes["key"]
    for scope in sorted(SCOPES):
        words = f"A key with the scope `{scope}`, or one that implies it."
        schemes[scope] = key | {"description": f"{words} {key['description']}"}
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["security"] = [
                {scope: [] for scope in scopes or ("key",)}
                for required in operation.get("security", ())
                for scopes in required.values()
            ]


def _models(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models of the interface that inherit from a model."""
    for model in root.__subclasses__():
        if model.__module__.startswith("celeus.api."):
            yield model
        yield from _models(model)
