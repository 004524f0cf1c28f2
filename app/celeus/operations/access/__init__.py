"""Who is known: API keys, authentication, browser sessions and invitations."""
