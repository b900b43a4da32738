"""Other people's programs on this machine: installed, confined, guarded."""
