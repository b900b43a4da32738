"""Marks a request from within this process: an ASGI extension that no HTTP server sets."""

INSIDE = "threadkeep.inside"
