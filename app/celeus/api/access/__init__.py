"""Access to the service: authentication, cookies, rate limits and route parameters."""
