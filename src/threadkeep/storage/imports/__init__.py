"""Whole conversations in and out of the database: for imports, exports, forks and moves to another user."""
