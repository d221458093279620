"""The claim check: what a model says at the end, compared with what the records hold."""
