"""Documents made searchable: extracted, split, indexed by words and by meaning."""
