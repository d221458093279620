"""Scenarios in which nobody can tell whether it happened, and how each is found out.

Refunds whose answer is lost, transfers on a chain, a file: simulated, each with wrong designs
beside ours. `scenarios` lists them, `stage.run` plays one.
"""
