"""One program, a shop, as the users of each framework write it; and what has to survive every crash."""
