"""The agent harness: a conversation, its loop, tools with budgets, a stop that leaves it whole."""
