"""Who may call: authentication, cookies, rate limits and route parameters."""
