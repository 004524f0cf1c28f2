"""API keys, their authentication, browser sessions, invitations and links to reports."""
