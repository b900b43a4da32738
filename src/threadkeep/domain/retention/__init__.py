"""How long conversations are kept that nobody writes in."""
