"""The handlers of our own API, one noun per file."""
