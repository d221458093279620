"""How much one read may ask for, of every store."""

from landed.core.errors import StoreError

PAGE_MAX = 10_000
"""Records, entries or names that one read may ask for."""


def bounded(limit: int) -> int:
    """Return `limit`, or raise `StoreError` when no read may ask for so many."""
    if not 1 <= limit <= PAGE_MAX:
        raise StoreError(f"ask for 1 to {PAGE_MAX} at a time, not {limit}")
    return limit
