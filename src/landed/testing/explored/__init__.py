"""The pieces of the explorer: the far side, the world around the core, its steps, what must hold.

Reading order: ledger · world · properties · steps · cases; `landed.testing.explorer` searches.
"""
