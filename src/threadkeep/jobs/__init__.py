"""Background work, for which no request waits."""
