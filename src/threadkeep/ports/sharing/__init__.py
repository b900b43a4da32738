"""Storage of shares."""
