"""Where records are durable: SQLite, behind the seam `landed.core.store.Store`."""
