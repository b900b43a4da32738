"""Tools that run in our own process."""
