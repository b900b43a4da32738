"""Import and export files: our own format, and those of other products."""
