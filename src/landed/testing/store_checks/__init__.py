"""The checks that `landed.testing.check_store` runs over a store, by what they are about."""
