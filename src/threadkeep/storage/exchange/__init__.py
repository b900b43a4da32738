"""Whole conversations in and out of the database, and how far imports have come."""
