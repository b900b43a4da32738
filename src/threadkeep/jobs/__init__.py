"""Background work: what nobody waits for."""
