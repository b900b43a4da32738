"""Whole conversations from elsewhere: forks, imports, recordings."""
