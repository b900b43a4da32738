"""Storage of how far imports have come."""
