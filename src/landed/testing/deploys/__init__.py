"""Scenarios in which a worker sleeps past its lease, and what it sends when it wakes.

One deployment on a cluster: the service checks epochs, or versions, or nothing; and a design that
relies on the lease alone. `scenarios` lists them, `stage.run` plays one.
"""
