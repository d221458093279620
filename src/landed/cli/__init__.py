"""The command line: each sub-command is a file of its own and is imported when it is called."""
