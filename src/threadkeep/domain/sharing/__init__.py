"""Conversations that users share by a link, read-only."""
