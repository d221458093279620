"""Where records are durable: SQLite or Postgres, behind the seam `landed.core.store.Store`."""
