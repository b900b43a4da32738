"""Crashes each framework's shop at every commit, and kills it there, on both databases.

python -m tests.frameworks [pydantic_ai …]
"""
