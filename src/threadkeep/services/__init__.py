"""Use cases, one noun per file. They decide who can do what, and own the transactions."""
