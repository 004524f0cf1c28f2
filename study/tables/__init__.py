"""One study a module: what it runs, and its tables and pictures."""
