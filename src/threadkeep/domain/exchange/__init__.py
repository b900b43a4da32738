"""Imports that users begin: how far each has come."""
