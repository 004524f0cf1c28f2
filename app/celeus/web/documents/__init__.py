"""The documentation as the service shows it: Markdown rendered to pages."""
