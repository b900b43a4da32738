"""Writes, stores, shows and follows the logs of turns, and recovers turns whose node disappeared."""
