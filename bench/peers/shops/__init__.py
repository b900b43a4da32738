"""The shop of tests/frameworks behind each framework's own server, which is killed where it hurts."""
