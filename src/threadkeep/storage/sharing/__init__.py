"""Shares in the database."""
