"""The runtime over HTTP: previews, commits, decisions and what is known, for code and people."""
