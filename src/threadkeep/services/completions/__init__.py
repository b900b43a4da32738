"""Completions: replies of an agent to a history that the client brings. Nothing but their cost is stored."""
