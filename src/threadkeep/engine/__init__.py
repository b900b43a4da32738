"""One turn, from request to last event. Knows no HTTP and no SQL."""
