"""Exports: all data of one user, or feedback, in files of our own format."""
