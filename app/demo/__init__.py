"""What the service is for, seen on real input: handwritten digits judged through HTTP."""
