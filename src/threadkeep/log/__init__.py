"""A turn's log: its format, writing it, following what is live, replies made from it."""
