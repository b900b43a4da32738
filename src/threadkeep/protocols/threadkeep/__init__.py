"""Our own streams: the events as they are, and plain text."""
