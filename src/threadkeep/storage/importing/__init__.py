"""How far imports have come, in the database."""
