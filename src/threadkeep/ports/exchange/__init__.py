"""Exports and imports: what the inside needs for them."""
