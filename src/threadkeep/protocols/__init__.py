"""Protocols that clients speak, one folder each. Encoding is pure: a turn's events to frames."""
