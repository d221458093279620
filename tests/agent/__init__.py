"""The agent harness: what is recorded, what the model is shown, and every way a run may end."""
