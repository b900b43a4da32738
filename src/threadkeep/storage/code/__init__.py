"""What agents in code store: who runs their programs, and what these keep."""
