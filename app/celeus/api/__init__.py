"""The HTTP interface: routes, their schemas, and the wire format they share."""
