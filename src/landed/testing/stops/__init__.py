"""Scenarios of the stop button: ours, and each wrong design that is known, beside one another.

They need no store and no world: a scripted model, a workspace and a shell in memory, and turns of
the event loop to count. `scenarios` lists them, `stage.run` plays one. The wrong designs are plain
code in `designs` and `loops`, which nothing of `landed.agent` knows of.
"""
