"""The chaos test: real processes that are killed, paused and cut off, and a count of what is true.

Read `load` (what is asked for), `acting` (by which verbs), `process` (who does it), `hand` (what
goes wrong), `ledgers` and `auditor` (what became of it), and `run`, which joins them.
"""
