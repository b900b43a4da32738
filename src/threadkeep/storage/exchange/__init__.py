"""Whole conversations in and out of the database, and the progress of imports."""
