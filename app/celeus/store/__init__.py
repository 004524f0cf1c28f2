"""PostgreSQL and Redis: tables, connections, cache, migrations, and an embedded server."""
