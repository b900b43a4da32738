"""A turn's log: written, stored, shown and followed; and the recovery of turns whose node is gone."""
