"""The web pages: sessions, labelling, reports and documentation for a browser."""
