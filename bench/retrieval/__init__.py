"""How good and how fast the search of documents is: `python -m bench.retrieval`."""
