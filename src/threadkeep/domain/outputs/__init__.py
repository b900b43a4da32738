"""Structured output: replies that are JSON of a schema."""
