"""Interfaces to the outside world, in domain terms."""
