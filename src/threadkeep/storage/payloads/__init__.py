"""Where large values and tools' files are stored."""
