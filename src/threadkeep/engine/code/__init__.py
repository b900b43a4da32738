"""One turn of an agent that is a program: it runs instead of our loop, and the turn stays ours."""
