"""Exports and imports of whole conversations."""
