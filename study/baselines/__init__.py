"""Methods that are measured beside the policies."""
