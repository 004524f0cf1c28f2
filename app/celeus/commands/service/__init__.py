"""What who runs a service types."""
