"""Persistence: one set of SQL for two databases."""
