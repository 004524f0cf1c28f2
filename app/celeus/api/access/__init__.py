"""Authentication, cookies, rate limits and route parameters."""
