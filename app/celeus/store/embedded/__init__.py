"""A PostgreSQL server that the service starts for itself."""
