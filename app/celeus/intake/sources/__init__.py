"""Files as they are: bytes to rows, with the places of faults."""
