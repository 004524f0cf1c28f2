"""Names of the members of an uploaded row."""

FIELDS = frozenset(
    {
        "id",
        "payload",
        "surrogate",
        "surrogates",
        "proxy",
        "target_probs",
        "surrogate_probs",
        "prediction",
        "group",
        "known",
        "bound_reason",
        "loss_lower",
        "loss_upper",
        "weight",
    }
)
SIDE_FIELDS = frozenset({"prediction", "answer", "payload", "surrogate"})
"""Members of a row that each system has of its own."""
