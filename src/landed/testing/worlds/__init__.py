"""The far sides that scenarios act on: small services with a file, keys and faults of their own."""
