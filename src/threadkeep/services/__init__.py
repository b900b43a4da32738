"""Use cases, one file a noun. They decide who may do what and own the transactions."""
