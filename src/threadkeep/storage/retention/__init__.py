"""Conversations that nobody writes in, in the database."""
