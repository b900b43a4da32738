"""Protocols that clients speak: one folder each. Encoding is pure, from a turn's events to frames."""
