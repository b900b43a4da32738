"""Sharing a conversation by a link."""
