"""The console in a real browser: what people see and press, and what others send them."""
