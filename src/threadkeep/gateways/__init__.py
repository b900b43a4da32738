"""Gateways to models: one file per provider API."""
