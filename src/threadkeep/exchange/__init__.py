"""Files with which data is taken along: our own exports, and those of other products."""
