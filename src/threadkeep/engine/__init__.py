"""One turn, from request to last event. Free of HTTP and SQL."""
