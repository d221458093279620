"""Ways to reach the world: `function` and `http` make a far side a `landed.core.tool.Tool`.

Nothing is imported here: pydantic and httpx2 are loaded by whoever first needs them.
"""
