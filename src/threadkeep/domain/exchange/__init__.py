"""Imports that users start, and their progress."""
