"""What `landed chat` is made of: how it is opened, driven and shown, at once or on a terminal."""
