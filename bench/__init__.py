"""How fast Threadkeep is, as ratios to a floor that is measured in the same run: `python -m bench`."""
