"""Threadkeep beside its peers, all measured by one harness: `make bench-peers`."""
