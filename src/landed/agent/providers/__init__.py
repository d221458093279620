"""Models behind a network: three dialects of one conversation, streamed, over httpx2."""
