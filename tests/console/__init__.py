"""The pages that `landed serve` shows to people."""
