"""The console: what waits for a person, what runs, what was done, and their word about it."""
