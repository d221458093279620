"""The only code that acts: it commits what core decided, starts it, and waits for anything."""
