"""Refunds in two phases: a dry run that a person agrees to, and the commit of that very plan.

Simulated and with processes, each with wrong designs beside ours. `scenarios` lists them.
"""
