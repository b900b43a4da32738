"""Makes documents searchable: extracts, splits, and indexes them by words and by meaning."""
