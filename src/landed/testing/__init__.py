"""For users' own tests and for ours: worlds that misbehave, virtual time, and contract suites."""
