"""A turn's log: written, stored, shown and followed; and what becomes of turns whose node is gone."""
