"""How a text is split into the words that it is searched by."""
