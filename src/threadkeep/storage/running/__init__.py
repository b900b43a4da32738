"""Turns that run or wait, for those who operate nodes and for the nodes themselves."""
